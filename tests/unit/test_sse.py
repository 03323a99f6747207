"""The event stream reader: which bytes are data, wherever the stream is cut."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.api.sse import EventParser
from tests.fakes.sse import read_events

EVENTS: dict[str, tuple[bytes, list[bytes]]] = {
    "one": (b"data: a\n\n", [b"a"]),
    "two": (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    "no_space": (b"data:a\n\n", [b"a"]),
    "one_space_goes": (b"data:  a \n\n", [b" a "]),
    "tab_stays": (b"data:\ta\n\n", [b"\ta"]),
    "carriage_returns": (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
    "both": (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    "mixed": (b"data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", [b"a", b"b", b"c"]),
    "other_separators_are_text": ("data: a\x0b\x0c\x1c\x85\u2028b\n\n".encode(),
                                  ["a\x0b\x0c\x1c\x85\u2028b".encode()]),
    "several_lines": (b"data: a\ndata:\ndata\ndata: b\n\n", [b"a\n\n\nb"]),
    "empty": (b"data:\n\n", [b""]),
    "empty_without_colon": (b"data\n\n", [b""]),
    "comments": (b": ping\n\n:\n:data: x\ndata: a\n: ping\ndata: b\n\n", [b"a\nb"]),
    "other_fields": (b"event: message\nid: 7\nretry: 10\nfoo: x\nfoo\ndata: a\n\n", [b"a"]),
    "no_data": (b"event: message\n\nid\n\n\n\n", []),
    "longer_name": (b"database: x\n\n data: x\n\nDATA: x\n\n", []),
    "mark": (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    "mark_alone": (b"\xef\xbb\xbf\ndata: a\n\n", [b"a"]),
    "second_mark": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
    "later_mark": (b"data: a\n\xef\xbb\xbfdata: b\n\n", [b"a"]),
    "mark_in_data": (b"data: \xef\xbb\xbfa\n\n", [b"\xef\xbb\xbfa"]),
    "not_utf8": (b"data: \xff\xe5\n\n", [b"\xff\xe5"]),
    "nul": (b"data: a\0b\n\n", [b"a\0b"]),
    "colons": (b'data: {"a":"b: c"}\n\n', [b'{"a":"b: c"}']),
    "older_error": (b'error: {"code":500}\n\n', [b'{"error": {"code":500}}']),
    "unended_line": (b"data: a\n\ndata: b", [b"a", b"b"]),
    "unended_event": (b"data: a\ndata: b\n", [b"a\nb"]),
    "unended_comment": (b"data: a\n\n: ping", [b"a"]),
    "unended_mark": (b"\xef\xbb\xbfdata: a", [b"a"]),
    "half_a_field": (b"data: a\n\ndat", [b"a"]),
    "nothing": (b"", []),
}
ALPHABET = st.sampled_from([
    b"data: ", b"data:", b"data", b"event: x", b"id:1", b":", b" ", b"a", b"\n", b"\r", b"\r\n",
    b"\n\n", b"\r\r", "北😀".encode(), b"\xef\xbb\xbf", b"{}",
])
STREAMS = st.lists(ALPHABET, max_size=40).map(b"".join)
MANY = settings(max_examples=500, deadline=None, database=None)


def parsed(pieces: Iterable[bytes]) -> list[bytes]:
    """All events of a stream that comes in these pieces."""
    parser = EventParser(error_lines=True)
    found = [data for piece in pieces for data in parser.feed(piece)]
    return found + parser.finish()


def cut(body: bytes, places: Iterable[int]) -> list[bytes]:
    """`body` in pieces that begin at these places."""
    edges = [0, *sorted(min(place, len(body)) for place in places), len(body)]
    return [body[a:b] for a, b in zip(edges, edges[1:])]


@pytest.mark.parametrize(("body", "events"), EVENTS.values(), ids=EVENTS)
def test_events_of_a_body(body: bytes, events: list[bytes]) -> None:
    """Only data is given, whatever else the lines hold and however they end."""
    assert parsed([body]) == events


@pytest.mark.parametrize(("body", "events"), EVENTS.values(), ids=EVENTS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_events_of_small_pieces(body: bytes, events: list[bytes], size: int) -> None:
    """It makes no difference where the network cuts: fields, line ends, characters, the mark."""
    assert parsed(body[i:i + size] for i in range(0, len(body), size)) == events


@MANY
@given(STREAMS, st.lists(st.integers(0, 200), max_size=12))
@example(b"data: a\r\n\r\ndata: b\r\n\r\n", [8, 9, 10, 11, 12])
@example(b"data: a\r\n\n", [8])
def test_any_cut_gives_the_same_events(body: bytes, places: list[int]) -> None:
    """The events depend on the bytes alone."""
    assert parsed(cut(body, places)) == parsed([body])


@MANY
@given(STREAMS)
def test_events_are_those_of_another_reader(body: bytes) -> None:
    """What has been ended by an empty line is what a reader of whole bodies finds in it."""
    expected = [event.data.encode() for event in read_events(body)[0]]
    assert EventParser(error_lines=True).feed(body) == expected


@pytest.mark.parametrize("end", [b"\n\n", b"\r\r", b"\r\n\r\n"])
def test_event_is_given_with_the_byte_that_ends_it(end: bytes) -> None:
    """An event does not wait for what comes behind it: a lone carriage return ends a line."""
    parser = EventParser(error_lines=True)
    need = len(end) if end != b"\r\n\r\n" else 3
    assert parser.feed(b"data: a" + end[:need - 1]) == []
    assert parser.feed(end[need - 1:need]) == [b"a"]
    assert parser.feed(end[need:] + b"data: b\n\n") == [b"b"]


def test_empty_piece_changes_nothing() -> None:
    """A line end that is cut in two is one, even with an empty piece in the cut."""
    assert parsed([b"data: a\r", b"", b"\ndata: b\r", b"", b"\n\r\n"]) == [b"a\nb"]


def test_long_line_costs_linear_time() -> None:
    """32 MB in pieces of 1 KB take a moment; copying the line anew with each would take minutes."""
    line = b"data: " + b"x" * (32 << 20) + b"\n\n"
    began = time.monotonic()
    events = parsed(line[i:i + 1024] for i in range(0, len(line), 1024))
    assert [len(event) for event in events] == [32 << 20]
    assert time.monotonic() - began < 30


def test_many_data_lines_cost_linear_time() -> None:
    """An event of a million lines is joined once."""
    began = time.monotonic()
    events = parsed([b"data: ab\n" * 1000] * 1000)
    assert [len(event) for event in events] == [3_000_000 - 1]
    assert time.monotonic() - began < 30
