"""A client that sends the bytes it is given and reads the HTTP answer strictly."""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.fakes.strict_json import strict_json
from tests.fakes.wire import (
    Cut, Headers, Malformed, Wire, body_length, is_chunked, read_chunks, read_head, values,
)

_STATUS = re.compile(r"HTTP/1\.([01]) ([1-5][0-9]{2}) ([^\r\n\0]*)")
PATIENCE = 60.0  # seconds; a guard against hanging, for machines that are busy


@dataclass
class RawAnswer:
    """One answer: the head at once, the body as it arrives (`pieces`) or whole (`body`).

    `cut` says, once the body was read, that it ended before its framing allowed it to.
    """

    status: int
    reason: str
    headers: Headers
    interim: list[int]
    _wire: Wire
    _bodiless: bool
    cut: bool = False
    _read: bytearray = field(default_factory=bytearray)
    _rest: Iterator[bytes] | None = None

    def all(self, name: str) -> list[str]:
        """Every value of the header field `name`."""
        return values(self.headers, name)

    def header(self, name: str) -> str | None:
        """The one value of `name`, None where it is missing; raises Malformed when repeated."""
        found = self.all(name)
        if len(found) > 1:
            raise Malformed(f"{name} is there {len(found)} times: {found}")
        return found[0] if found else None

    def pieces(self) -> Iterator[bytes]:
        """The rest of the body as it arrives, chunk by chunk where it is chunked; blocks."""
        if self._rest is None:
            self._rest = self._arriving()
        return self._rest

    @property
    def body(self) -> bytes:
        """The whole body, or what came of it; blocks until its end."""
        return bytes(self.whole()._read)

    def whole(self) -> RawAnswer:
        """This answer with its body read to the end; blocks."""
        for _ in self.pieces():
            pass
        return self

    def json(self) -> Any:
        """The body read as strict JSON; raises ValueError."""
        return strict_json(self.body)

    def _arriving(self) -> Iterator[bytes]:
        try:
            for piece in self._framed():
                self._read += piece
                yield piece
        except Cut as cut:
            self.cut = True
            self._read += cut.got

    def _framed(self) -> Iterator[bytes]:
        if self._bodiless:
            return
        left = body_length(self.headers)
        if is_chunked(self.headers):
            yield from read_chunks(self._wire)
            return
        while left is None or left > 0:
            piece = self._wire.arrived(65536 if left is None else left)
            if not piece:
                if left is not None:
                    raise Cut(b"")
                return
            left = None if left is None else left - len(piece)
            yield piece


class RawClient:
    """One connection to the server of a base URL; a context manager that closes it."""

    def __init__(self, url: str, timeout: float = PATIENCE) -> None:
        parts = urlsplit(url)
        self.host = f"{parts.hostname}:{parts.port}"
        self.socket = socket.create_connection((parts.hostname or "", parts.port or 80), timeout)
        self.was_reset = False
        self.wire = Wire(self._receive)

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, data: bytes) -> None:
        """Send `data` as it is; blocks until the kernel has all of it."""
        self.socket.sendall(data)

    def request(self, method: str, path: str, headers: Iterable[tuple[str, str]] = (),
                body: bytes | None = None) -> RawAnswer:
        """Send one well-formed request and wait for the head of its answer."""
        self.send(request_bytes(method, path, [("Host", self.host), *headers], body))
        return self.answer(method)

    def answer(self, method: str = "GET") -> RawAnswer:
        """The next answer, its body still to be read; raises Cut when there is none."""
        interim: list[int] = []
        while True:
            line, headers = read_head(self.wire)
            match = _STATUS.fullmatch(line)
            if not match:
                raise Malformed(f"no status line: {line!r}")
            status = int(match[2])
            if status >= 200:
                bodiless = method == "HEAD" or status in (204, 304)
                return RawAnswer(status, match[3], headers, interim, self.wire, bodiless)
            interim.append(status)

    def _receive(self, size: int) -> bytes:
        try:
            return self.socket.recv(size)
        except ConnectionError:
            self.was_reset = True
            return b""

    def end(self) -> None:
        """Send nothing more, but go on reading."""
        self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Leave politely."""
        self.socket.close()

    def reset(self) -> None:
        """Leave with a reset instead of a goodbye."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def request_bytes(method: str, path: str, headers: Iterable[tuple[str, str]],
                  body: bytes | None = None) -> bytes:
    """A request with these headers in this order, and a Content-Length when there is a body."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


def fetch(url: str, method: str, path: str, body: bytes | None = None,
          headers: Iterable[tuple[str, str]] = ()) -> RawAnswer:
    """One request on a connection of its own, the answer read to its end."""
    with RawClient(url) as client:
        return client.request(method, path, headers, body).whole()
