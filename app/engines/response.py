"""The head of an engine's answer: read without the parser for mails, and never half of it."""

import email.parser
import http.client
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from app.engines import chunked
from app.engines.engine_socket import EngineSocket

_SECURE = 16384  # bytes; a record of TLS holds no more
_LONGEST_LINE = 65536  # bytes, as in http.client
_MOST_HEADERS = 100
_FIELD = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\r\n\0]*)\r?\n")
_NO_ANSWER = "it closed the connection without an answer"


class NothingReceived(ConnectionResetError):
    """The connection closed before one byte of answer."""


class HeadersCutShort(http.client.HTTPException):
    """The connection closed between the status line and the end of the headers."""


def read_headers(reader: Any) -> http.client.HTTPMessage:
    """The headers that ``reader`` is at, their end included; raises http.client.HTTPException.

    Plain ones go past the parser for mails: with that, and head and body sent to the engine
    together, a plain request costs 0.93 of what it did. Others are read as http.client reads them.
    """
    lines: list[str] = []
    while True:
        line = reader.readline(_LONGEST_LINE + 1)
        if not line:
            raise HeadersCutShort("its headers are cut short")
        if len(line) > _LONGEST_LINE:
            raise http.client.LineTooLong("header line")
        if line in (b"\r\n", b"\n"):
            break
        if len(lines) == _MOST_HEADERS:
            raise http.client.HTTPException(f"got more than {_MOST_HEADERS} headers")
        lines.append(line.decode("iso-8859-1"))
    fields = [_FIELD.fullmatch(line) for line in lines]
    if None in fields:
        return email.parser.Parser(_class=http.client.HTTPMessage).parsestr("".join(lines) + "\r\n")
    message = http.client.HTTPMessage()
    for field in filter(None, fields):
        message.set_raw(field[1], field[2])
    return message


class EngineResponse(http.client.HTTPResponse):
    """An answer; ``begin`` raises NothingReceived and HeadersCutShort beside http.client's own."""

    fp: Any
    _method: str

    def __init__(self, sock: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._sock = sock

    def begin(self) -> None:
        """As http.client's, which takes its reader of headers from its own module."""
        try:
            first = self.fp.peek(1)
        except ConnectionError as error:
            raise NothingReceived(_NO_ANSWER) from error
        if not first:
            raise NothingReceived(_NO_ANSWER)
        version, status, reason = self._status_line()
        while status == http.client.CONTINUE:
            read_headers(self.fp)
            version, status, reason = self._status_line()
        if not version.startswith(("HTTP/1.", "HTTP/0.9")):
            raise http.client.UnknownProtocol(version)
        self.code = self.status = status
        self.reason = reason.strip()
        self.version = 10 if version in ("HTTP/1.0", "HTTP/0.9") else 11
        self.headers = self.msg = read_headers(self.fp)
        self._frame()

    def arriving(self) -> Iterator[bytes]:
        """The pieces of a chunked body, as ``chunked.read`` gives them; closed at the end."""
        if isinstance(self._sock, EngineSocket):
            ahead = self.fp.read1(len(self.fp.peek(1)))
            self.fp = self.fp.detach()  # without its buffer, which would stay with each stream
            yield from chunked.read(ahead, self._sock.receiver())
        else:  # TLS, which has bytes that its descriptor has not
            yield from chunked.read(b"", partial(self.fp.read1, _SECURE))
        self.close()

    def _status_line(self) -> tuple[str, int, str]:
        found: tuple[str, int, str] = self._read_status()  # type: ignore[attr-defined]
        return found

    def _frame(self) -> None:
        """Find how the body ends (RFC 9112, 6.3), with http.client's leniency."""
        self.chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        self.chunk_left = None
        self.will_close = self._check_close()  # type: ignore[attr-defined]
        self.length = None if self.chunked else _length(self.headers.get("content-length"))
        empty = self.status in (204, 304) or 100 <= self.status < 200 or self._method == "HEAD"
        if empty:
            self.length = 0
        self.will_close = self.will_close or not (self.chunked or self.length is not None)


def _length(text: str | None) -> int | None:
    try:
        found = int(text or "")
    except ValueError:
        return None
    return None if found < 0 else found
