"""Reads a chunked body (RFC 9112, 7.1) as it arrives.

Reading it through urllib3 and http.client was two thirds of all that passing an event on cost.
"""

import http.client
import re
from collections.abc import Callable, Iterator

Receive = Callable[[], bytes]

_LINE = 65536  # bytes, at most, of the line before a chunk
_HEX = re.compile(rb"[0-9a-fA-F]{1,16}")


def read(data: bytes, receive: Receive) -> Iterator[bytes]:
    """The pieces of a body that begins with ``data``; ends only where it is whole.

    ``receive`` gives the bytes that come next, none at the end of the connection. Raises what it
    raises, and http.client.HTTPException for broken framing.
    """
    at = 0
    while True:
        data, at, end = _line(data, at, receive)
        stop = end + _size(data[at:end])
        if stop == end:
            break
        at = end
        while stop > len(data):
            if at < len(data):
                yield data[at:]
            stop -= len(data)
            data, at = receive(), 0
            if not data:
                raise http.client.IncompleteRead(b"", stop)
        if at < stop:
            yield data[at:stop]
        at = stop
        while len(data) < at + 2 and (more := receive()):
            data, at = data[at:] + more, 0
        if data[at:at + 2] != b"\r\n":
            raise http.client.HTTPException("a chunk is longer than it says")
        at += 2
    _pass_trailer(data, end, receive)


def _line(data: bytes, at: int, receive: Receive) -> tuple[bytes, int, int]:
    """The data with a whole line in it, where that begins and ends; a shorter one at the end."""
    while (end := data.find(b"\n", at) + 1) == 0:
        more = receive() if len(data) - at < _LINE else b""
        if not more:
            return data, at, len(data)
        data, at = data[at:] + more, 0
    return data, at, end


def _size(line: bytes) -> int:
    """The size that the line before a chunk announces, its extensions passed over."""
    digits = line.partition(b";")[0].strip()
    if not line.endswith(b"\n") or not _HEX.fullmatch(digits):
        raise http.client.HTTPException("it broke off between two chunks, or a size is no number")
    return int(digits, 16)


def _pass_trailer(data: bytes, at: int, receive: Receive) -> None:
    """Read to the end of the body; some close instead of ending their trailer."""
    line = b"-"
    while line not in (b"\r\n", b"\n", b""):
        data, at, end = _line(data, at, receive)
        line = data[at:end]
        if len(line) >= _LINE:
            raise http.client.HTTPException("a line of the trailer is too long")
        at = end
