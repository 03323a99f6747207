"""Answers as they come over a socket: whole ones, and chunked streams of events."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from tests.bench.exchange import DONE, EVENT

RECEIVE = 65536  # bytes asked for at once
_OK = re.compile(rb"HTTP/1\.[01] 200[ \r]")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


class LoadError(Exception):
    """The load could not do what it was asked for; the message is a sentence."""


@dataclass(frozen=True)
class Target:
    """What a load needs to know of a server, see launch.Running."""

    port: int
    pid: int
    headers: Mapping[str, str]
    opening: float


def connect(port: int) -> socket.socket:
    """A connection to a port of 127.0.0.1 that does not block. Raises OSError."""
    sock = socket.create_connection(("127.0.0.1", port), timeout=10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setblocking(False)
    return sock


def whole(received: bytes | bytearray) -> bytes | None:
    """The body of an answer that is there to its end, else None.

    Raises LoadError for any other status than 200 and for an answer without a length.
    """
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = bytes(received[:end])
    length = _LENGTH.search(head)
    body = bytes(received[end + 4:])
    if _OK.match(head) and not length and _CHUNKED.search(head):
        return body if body.endswith(b"\r\n0\r\n\r\n") else None
    if not _OK.match(head) or not length:
        raise LoadError(f"unexpected answer: {_excerpt(received)}")
    return body if len(body) >= int(length[1]) else None


class EventStream:
    """Reads one chunked stream of numbered events and counts what is wrong with it."""

    def __init__(self, events: int) -> None:
        self._events = events
        self._received = b""
        self._line = b""
        self._headed = False
        self._done = False
        self._next = 0
        self._disordered = 0
        self._count = 0
        self.over = False

    @property
    def begun(self) -> bool:
        """Whether an event has come."""
        return self._count > 0

    @property
    def faults(self) -> int:
        """Events that are missing, doubled or out of order, and one for an end that is missing."""
        return abs(self._events - self._count) + self._disordered + (not self._done)

    def feed(self, data: bytes) -> list[int]:
        """The times of sending of the events that are complete with `data`; none: closed.

        Raises LoadError where the answer is no chunked 200.
        """
        self.over = self.over or not data
        self._received += data
        if not self._headed and not self._take_head():
            return []
        sent = []
        for number, nanoseconds in EVENT.findall(self._lines()):
            self._disordered += int(number) != self._next
            self._next = int(number) + 1
            sent.append(int(nanoseconds))
        self._count += len(sent)
        return sent

    def _take_head(self) -> bool:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = self._received[:end]
        if not _OK.match(head) or not _CHUNKED.search(head):
            raise LoadError(f"unexpected answer to a stream: {_excerpt(self._received)}")
        self._received = self._received[end + 4:]
        self._headed = True
        return True

    def _lines(self) -> bytes:
        """The content up to its last whole line."""
        text = self._line + self._content()
        end = text.rfind(b"\n") + 1
        self._line = text[end:]
        self._done = self._done or DONE.search(text) is not None
        return text[:end]

    def _content(self) -> bytes:
        """The content of the chunks that are whole (RFC 9112, 7.1)."""
        content, at = b"", 0
        while (end := self._received.find(b"\r\n", at)) >= 0:
            size = int(self._received[at:end], 16)
            stop = end + 2 + size + 2
            if len(self._received) < stop:
                break
            content += self._received[end + 2:end + 2 + size]
            at = stop
            self.over = self.over or size == 0
        self._received = self._received[at:]
        return content


def _excerpt(received: bytes | bytearray) -> str:
    return bytes(received[:400]).decode("utf-8", "replace")
