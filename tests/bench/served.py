"""One client of the fake engine: its requests as they come, and the events it is owed."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator

from tests.bench.exchange import STREAM_END, event

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Connection:
    """One client: its requests as they come, and what it has not taken yet."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.waiting = b""
        self._received = bytearray()

    def send(self, data: bytes) -> None:
        """Send as much as goes without waiting, keep the rest; raises OSError if it is gone."""
        data = self.waiting + data
        try:
            data = data[self.sock.send(data):]
        except BlockingIOError:
            pass
        self.waiting = data

    def receive(self) -> bool:
        """Take what has come; False where the client has closed or reset the connection."""
        try:
            data = self.sock.recv(65536)
        except ConnectionError:
            return False
        self._received += data
        return bool(data)

    def requests(self) -> Iterator[tuple[bytes, bytes]]:
        """Method and body of each request that is whole."""
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:end])
            length = _LENGTH.search(head)
            stop = end + 4 + (int(length[1]) if length else 0)
            if len(self._received) < stop:
                return
            body = bytes(self._received[end + 4:stop])
            del self._received[:stop]
            yield head.partition(b" ")[0], body


class Stream:
    """What is left of one answer."""

    def __init__(self, connection: Connection, events: int, every: float) -> None:
        self.connection = connection
        self.events = events
        self.every = every  # seconds
        self.sent = 0

    def send_next(self) -> bool:
        """Send an event, and the end after the last; False when there is nothing left to send."""
        if self.sent < self.events:
            self.connection.send(event(self.sent, time.monotonic_ns()))
            self.sent += 1
        if self.sent < self.events:
            return True
        self.connection.send(STREAM_END)
        return False
