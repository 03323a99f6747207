"""A socket to an engine whose time limits the kernel keeps."""

import socket
from collections.abc import Callable
from typing import Any

from app.kernel_timing import NO_LIMIT, interval

_AT_ONCE = 4096  # bytes, which every stream holds


class EngineSocket(socket.socket):
    """As any blocking socket with a time limit: raises TimeoutError where nothing happens in time.

    With the kernel's limits, which are not set again where they are the same, a plain request makes
    five system calls less.
    """

    _limit: float | None = None

    @classmethod
    def of(cls, connected: socket.socket) -> "EngineSocket":
        """The same connection with the same limit; ``connected`` is used up."""
        limit = connected.gettimeout()
        made = cls(fileno=connected.detach())
        made.setblocking(True)
        made.settimeout(limit)
        return made

    def gettimeout(self) -> float | None:
        """The limit in seconds, None where there is none."""
        return self._limit

    def settimeout(self, value: float | None) -> None:
        """From now on each send and each receive may take so many seconds; None: any time."""
        if value != self._limit:
            packed = NO_LIMIT if value is None else interval(value)
            self.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, packed)
            self.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, packed)
            self._limit = value

    def recv_into(self, buffer: Any, *args: Any) -> int:
        """As socket.recv_into."""
        try:
            return super().recv_into(buffer, *args)
        except BlockingIOError:
            raise TimeoutError("timed out") from None

    def sendall(self, data: Any, *args: Any) -> None:
        """As socket.sendall; the limit is for each piece that the engine takes."""
        try:
            super().sendall(data, *args)
        except BlockingIOError:
            raise TimeoutError("timed out") from None

    def receiver(self) -> Callable[[], bytes]:
        """What gives the next bytes, none at the end."""
        # One for all: recv makes and shrinks one each time, which left 17 KB more of each stream.
        buffer = bytearray(_AT_ONCE)
        view, into = memoryview(buffer), super().recv_into

        def receive() -> bytes:
            try:
                return bytes(view[:into(buffer)])
            except BlockingIOError:
                raise TimeoutError("timed out") from None

        return receive
