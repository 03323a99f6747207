"""The head of an engine's answer: what http.client reads in it, read faster; and chunked bodies."""

from __future__ import annotations

import http.client
import io
from collections.abc import Iterator

import pytest

from app.engines import chunked
from app.engines.response import HeadersCutShort, read_headers

HEADERS = {
    "plain": b"Content-Type: text/event-stream\r\nX-A:  b c \r\nEmpty:\r\n",
    "bare_newlines": b"A: 1\nB: 2\n",
    "folded": b"A: 1\r\n and more\r\nB: 2\r\n",
    "repeated": b"Set-Cookie: a\r\nset-cookie: b\r\n",
    "latin_1": "A: é\r\n".encode("latin-1"),
    "no_colon": b"A: 1\r\nnonsense\r\nB: 2\r\n",
    "space_before_the_colon": b"A : 1\r\nB: 2\r\n",
    "lone_return": b"A: 1\rB: 2\r\nC: 3\r\n",
    "none": b"",
}


@pytest.mark.parametrize("raw", HEADERS.values(), ids=HEADERS)
def test_headers_are_those_of_http_client(raw: bytes) -> None:
    """However odd they are."""
    ours = read_headers(io.BufferedReader(io.BytesIO(raw + b"\r\n")))
    theirs = http.client.parse_headers(io.BytesIO(raw + b"\r\n"))
    assert ours.items() == theirs.items()
    assert ours.get_all("set-cookie") == theirs.get_all("set-cookie")


@pytest.mark.parametrize("raw", [b"", b"A: 1\r\n", b"A: 1\r\nB"])
def test_headers_without_an_end_are_refused(raw: bytes) -> None:
    """The connection closed in the midst of them."""
    with pytest.raises(HeadersCutShort):
        read_headers(io.BufferedReader(io.BytesIO(raw)))


@pytest.mark.parametrize("raw", [b"A: " + b"x" * 70_000 + b"\r\n\r\n", b"A: 1\r\n" * 200 + b"\r\n"],
                         ids=["long", "many"])
def test_headers_without_measure_are_refused(raw: bytes) -> None:
    """As http.client does it."""
    with pytest.raises(http.client.HTTPException):
        read_headers(io.BufferedReader(io.BytesIO(raw)))


def pieces(wire: bytes, size: int, ahead: int = 0) -> Iterator[bytes]:
    """A body that comes in receipts of so many bytes, some of it `ahead`."""
    rest = io.BytesIO(wire[ahead:])
    return chunked.read(wire[:ahead], lambda: rest.read(size))


WHOLE = {
    "chunks": b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n",
    "extension": b"3;x=y\r\nabc\r\n04 \r\ndefg\r\n0\r\n\r\n",
    "trailer": b"7\r\nabcdefg\r\n0\r\nX-Sum: 1\r\n\r\n",
    "closed_in_the_trailer": b"7\r\nabcdefg\r\n0\r\nX-Sum: 1",
    "closed_before_it": b"7\r\nabcdefg\r\n0\r\n",
}
BROKEN = {
    "nothing": b"", "no_end": b"3\r\nabc\r\n", "half_a_chunk": b"5\r\nabc", "half_a_size": b"3",
    "no_size": b"x\r\nabc\r\n", "negative": b"-3\r\nabc\r\n", "longer": b"3\r\nabcd\r\n0\r\n\r\n",
    "endless_line": b"3" + b" " * 70_000, "endless_trailer": b"0\r\n" + b"x" * 70_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("ahead", [0, 1, 4, 12])
@pytest.mark.parametrize("wire", WHOLE.values(), ids=WHOLE)
def test_a_chunked_body_is_the_same_however_it_comes(wire: bytes, ahead: int, size: int) -> None:
    """No piece is empty, and none is waited for that could be given away."""
    found = list(pieces(wire, size, ahead))
    assert b"".join(found) == b"abcdefg"
    assert all(found)


@pytest.mark.parametrize("size", [1, 5, 100_000])
@pytest.mark.parametrize("wire", BROKEN.values(), ids=BROKEN)
def test_a_broken_body_does_not_end(wire: bytes, size: int) -> None:
    """It raises, after all that could be given away."""
    with pytest.raises(http.client.HTTPException):
        list(pieces(wire, size))


def test_a_part_of_a_chunk_is_given_away_at_once() -> None:
    """A large chunk does not have to be whole."""
    found = pieces(b"64\r\n" + b"x" * 100, 30)
    assert next(found) == b"x" * 26
    assert next(found) == b"x" * 30
