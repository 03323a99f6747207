"""HTTP/1.1 as it is on the wire, read strictly (RFC 9112): what is malformed raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Headers = list[tuple[str, str]]
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[^\r\n]*)?\r\n")
END = b"\r\n"


class Malformed(Exception):
    """The bytes break the rules of HTTP/1.1."""


class Cut(Exception):
    """The bytes ended before the message did; `got` is the part that came."""

    def __init__(self, got: bytes) -> None:
        super().__init__(f"the other side stopped after {got[-60:]!r}")
        self.got = got


class Wire:
    """Bytes from `receive(size)`, which blocks and gives b"" at the end, cut as HTTP needs them."""

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self._receive = receive
        self._buffer = bytearray()

    def _fill(self) -> bool:
        data = self._receive(65536)
        self._buffer += data
        return bool(data)

    def _take(self, size: int) -> bytes:
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def until(self, mark: bytes) -> bytes:
        """The bytes up to and with `mark`; raises Cut."""
        start = 0
        while (found := self._buffer.find(mark, start)) < 0:
            start = max(0, len(self._buffer) - len(mark))
            if not self._fill():
                raise Cut(self._take(len(self._buffer)))
        return self._take(found + len(mark))

    def exactly(self, size: int) -> bytes:
        """`size` bytes; raises Cut."""
        while len(self._buffer) < size:
            if not self._fill():
                raise Cut(self._take(len(self._buffer)))
        return self._take(size)

    def arrived(self, limit: int) -> bytes:
        """At least one byte and at most `limit`, as they came; b"" at the end."""
        if not self._buffer:
            self._fill()
        return self._take(limit)

    def ended(self) -> bool:
        """Whether nothing is left to read; blocks until that is known."""
        return not self._buffer and not self._fill()


def read_head(wire: Wire) -> tuple[str, Headers]:
    """Start line and header fields in order of one message; raises Cut or Malformed."""
    head = wire.until(END + END)[:-4]
    first, *lines = head.decode("latin-1").split("\r\n")
    return first, [_field(line) for line in lines]


def _field(line: str) -> tuple[str, str]:
    match = _FIELD.fullmatch(line)
    if not match or "\n" in line or "\r" in line or "\0" in line:
        raise Malformed(f"no header field: {line!r}")
    return match[1], match[2]


def read_chunks(wire: Wire) -> Iterator[bytes]:
    """The data of each chunk in turn, trailers dropped; raises Cut or Malformed."""
    while size := _chunk_size(wire):
        data = wire.exactly(size)
        if wire.exactly(2) != END:
            raise Malformed("a chunk is longer than its size says")
        yield data
    while line := wire.until(END)[:-2]:
        _field(line.decode("latin-1"))


def _chunk_size(wire: Wire) -> int:
    line = wire.until(END)
    match = _CHUNK.fullmatch(line)
    if not match:
        raise Malformed(f"no chunk size: {line!r}")
    return int(match[1], 16)


def values(headers: Headers, name: str) -> list[str]:
    """Every value of the field `name`, in order."""
    return [value for key, value in headers if key.lower() == name.lower()]


def body_length(headers: Headers) -> int | None:
    """The one Content-Length, None where there is none; raises Malformed."""
    lengths = values(headers, "Content-Length")
    if not lengths:
        return None
    if len(lengths) > 1 or not re.fullmatch("[0-9]+", lengths[0]):
        raise Malformed(f"Content-Length: {lengths}")
    if values(headers, "Transfer-Encoding"):
        raise Malformed("Content-Length beside Transfer-Encoding")
    return int(lengths[0])


def is_chunked(headers: Headers) -> bool:
    """Whether the body comes in chunks; raises Malformed for any other transfer encoding."""
    encodings = values(headers, "Transfer-Encoding")
    if encodings and [e.lower() for e in encodings] != ["chunked"]:
        raise Malformed(f"Transfer-Encoding: {encodings}")
    return bool(encodings)
