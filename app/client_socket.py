"""The socket of one client: a request must be whole in time, and an answer must be taken."""

import errno
import socket
import time

from gunicorn.http.errors import NoMoreData

_DISCARDED = 65536  # bytes at a time


class Overdue(NoMoreData):
    """The request was not whole when its time was up."""


class ClientSocket(socket.socket):
    """A socket that raises Overdue past ``deadline`` and gives up on a client that reads nothing.

    ``deadline`` is a time on the monotonic clock, or None; ``write_timeout`` is in seconds.
    """

    deadline: float | None = None
    write_timeout: float | None = None

    @classmethod
    def of(cls, accepted: socket.socket, write_timeout: float) -> "ClientSocket":
        """The same connection; ``accepted`` is used up."""
        made = cls(fileno=accepted.detach())
        made.write_timeout = write_timeout
        return made

    def recv(self, size: int, flags: int = 0) -> bytes:
        """As socket.recv; raises Overdue where nothing comes before the deadline."""
        if self.deadline is None:
            return super().recv(size, flags)
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Overdue()
        self.settimeout(left)
        try:
            return super().recv(size, flags)
        except TimeoutError:
            raise Overdue() from None

    def linger(self, seconds: float) -> None:
        """Say that no more comes, and take what the client still sends, for so long at most.

        Closing with bytes unread resets the connection, and the client may lose the answer.
        """
        until = time.monotonic() + seconds
        try:
            self.shutdown(socket.SHUT_WR)
            while (left := until - time.monotonic()) > 0:
                self.settimeout(left)
                if not super().recv(_DISCARDED):
                    return
        except OSError:
            return  # it left, or sends and sends

    def sendall(self, data: bytes, flags: int = 0) -> None:  # type: ignore[override]
        """As socket.sendall, but the time limit is for each piece the client takes, not for all.

        Raises BrokenPipeError, as for a client that left: this one might as well have.
        """
        if self.gettimeout() != self.write_timeout:
            self.settimeout(self.write_timeout)
        view = memoryview(data)
        try:
            while view:
                view = view[self.send(view, flags):]
        except TimeoutError:
            raise BrokenPipeError(errno.EPIPE, "the client takes no bytes") from None
