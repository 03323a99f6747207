"""Reads an engine's socket as a body arrives, without a look at the clock for each piece."""

import socket
from typing import Any

from app.kernel_timing import interval

_AT_ONCE = 65536  # bytes


class SocketReader:
    """Reads a socket as a BufferedReader does, the kernel keeping the time.

    An event costs MEASURED of what it costs through a reader that waits first and reads then.
    Raises TimeoutError where nothing comes in time. A limit that the socket gets later counts from
    then on.
    """

    def __init__(self, reader: Any, sock: socket.socket) -> None:
        """Goes on behind what ``reader``, a BufferedReader of the socket, has given away.

        Blocks until something comes; the limit is the one that the socket has.
        """
        self._sock = sock
        self._data: bytes = reader.read1(len(reader.peek(1)))
        self._at = 0
        limit = sock.gettimeout()
        if limit:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, interval(limit))
            sock.settimeout(None)

    def readline(self, limit: int) -> bytes:
        """As that of BufferedReader; more than the limit may come."""
        while (end := self._data.find(b"\n", self._at)) < 0 and len(self._data) - self._at < limit:
            more = self._receive()
            if not more:
                break
            self._data, self._at = self._data[self._at:] + more, 0
        return self._take(len(self._data) if end < 0 else end + 1)

    def read1(self, size: int) -> bytes:
        """As that of BufferedReader: what is there, or else what comes next."""
        if self._at == len(self._data):
            self._data, self._at = self._receive(), 0
        return self._take(min(self._at + size, len(self._data)))

    def read(self, size: int) -> bytes:
        """As that of BufferedReader: so many bytes, fewer only at the end."""
        found = self.read1(size)
        while found and len(found) < size and (more := self.read1(size - len(found))):
            found += more
        return found

    def _receive(self) -> bytes:
        try:
            return self._sock.recv(_AT_ONCE)
        except BlockingIOError:
            raise TimeoutError("timed out") from None

    def _take(self, end: int) -> bytes:
        found = self._data[self._at:end]
        self._at = end
        return found
