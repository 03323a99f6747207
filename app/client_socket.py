"""The socket of one client: a request must be whole in time, and an answer must be taken."""

import errno
import math
import select
import socket
import time

from gunicorn.http.errors import LimitRequestHeaders, NoMoreData

from app.kernel_timing import interval

_AT_ONCE = 65536  # bytes at a time
_HEAD_ENDS = (b"\r\n\r\n", b"\n\n")
_LONGEST_HEAD = 262144  # bytes; longer ones are refused
_LOOK = 0.1  # s between two looks at whether the reading thread is still to wait
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


class Overdue(NoMoreData):
    """The request was not whole when its time was up."""


class Interrupted(NoMoreData):
    """The rest of the request is not waited for, as the gateway is about to end."""


class ClientSocket(socket.socket):
    """A socket that raises Overdue past ``deadline`` and gives up on a client that reads nothing.

    ``deadline`` is a time on the monotonic clock, or None. ``patience`` is for how many seconds
    nothing may come before it. ``asks`` is whether the client waits to be told to go on with the
    body (RFC 9110, 10.1.1): it is told when more is read.
    """

    deadline: float | None = None
    patience: float = math.inf
    asks: bool = False
    interrupted: bool = False
    ahead: bytes = b""
    too_long: bool = False  # the head in ``ahead``, which has no end yet

    @classmethod
    def of(cls, accepted: socket.socket, write_timeout: float) -> "ClientSocket":
        """The same connection, each piece to be taken within so many seconds.

        ``accepted`` is used up.
        """
        made = cls(fileno=accepted.detach())
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, interval(write_timeout))
        return made

    def settimeout(self, value: float | None) -> None:
        """As socket.settimeout; a limit that it has already costs nothing."""
        if value != self.gettimeout():
            super().settimeout(value)

    def setblocking(self, flag: bool) -> None:
        """As socket.setblocking."""
        self.settimeout(None if flag else 0.0)

    def arrives(self, seconds: float) -> bool:
        """Wait so long for something to come; whether a request can be read now, as ``gather``."""
        if self.holds_head:
            return True
        poll = select.poll()
        poll.register(self, select.POLLIN)
        return bool(poll.poll(1000 * seconds)) and self.gather()

    def gather(self) -> bool:
        """Take what has come into ``ahead``, never blocking; whether a request can be read now.

        It can when its head is whole, or too long to be one, or the client sends nothing more.
        """
        try:
            piece = super().recv(_AT_ONCE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True  # whoever reads next is told the same
        searched = max(0, len(self.ahead) - 3)
        self.ahead += piece
        ended = any(self.ahead.find(end, searched) >= 0 for end in _HEAD_ENDS)
        self.too_long = not ended and len(self.ahead) > _LONGEST_HEAD
        return not piece or ended or self.too_long

    @property
    def holds_head(self) -> bool:
        """Whether a whole head is in ``ahead``: a client may send requests without waiting."""
        return any(end in self.ahead for end in _HEAD_ENDS)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """As socket.recv, ``ahead`` first; raises Overdue where nothing comes in time.

        Raises LimitRequestHeaders, like gunicorn for one field, where the whole head is too long,
        and Interrupted soon after ``interrupted`` is set, by whatever thread.
        """
        if self.too_long and not self.ahead:
            raise LimitRequestHeaders("the head is too long")
        if self.ahead:
            piece, self.ahead = self.ahead[:size], self.ahead[size:]
            return piece
        if self.asks:
            self.asks = False
            self.sendall(_GO_ON)
        if self.deadline is None:
            return super().recv(size, flags)
        now = time.monotonic()
        end = min(self.deadline, now + self.patience)
        while now < end:
            if self.interrupted:
                raise Interrupted()
            self.settimeout(min(end - now, _LOOK))
            try:
                return super().recv(size, flags)
            except TimeoutError:
                now = time.monotonic()
        raise Overdue()

    def discard(self) -> bool:
        """Drop what has come, never blocking; whether more can come."""
        try:
            return bool(super().recv(_AT_ONCE, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def sendall(self, data: bytes, flags: int = 0) -> None:  # type: ignore[override]
        """As socket.sendall, but the time limit is for each piece the client takes, not for all.

        Raises BrokenPipeError, as for a client that left: this one might as well have.
        """
        self.settimeout(None)  # the kernel keeps the time
        try:
            sent = self.send(data, flags)
            if sent < len(data):
                view = memoryview(data)[sent:]
                while view:
                    view = view[self.send(view, flags):]
        except BlockingIOError:
            raise BrokenPipeError(errno.EPIPE, "the client takes no bytes") from None
