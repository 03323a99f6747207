"""The ways in which an engine's stream can fail after its head, or end without looking like it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.fakes.engine_steps import close, hold, reset, send, silence
from tests.fakes.raw_engine import Step
from tests.fakes.stream_steps import framed, head_for
from tests.server.stream.apis import Api

CUT_AT = 20  # bytes of an event before it breaks off
LAST_CHUNK = send(b"0\r\n\r\n")


@dataclass(frozen=True)
class Fault:
    """One way to fail: `partial` is what comes after whole events, `steps` what happens then."""

    steps: Sequence[Step]
    framing: str = "chunked"
    partial: Callable[[Api], bytes] = lambda api: b""
    promised: Callable[[int], int] = lambda size: size

    def sent(self, api: Api, count: int) -> bytes:
        """What reaches the client of the engine's own bytes."""
        return b"".join(api.events(count)) + self.partial(api)

    def script(self, api: Api, count: int, seen: threading.Event) -> list[Step]:
        """Send `count` events and the rest; once the client has seen them, fail."""
        body = self.sent(api, count)
        opening = head_for(self.framing, self.promised(len(body)))
        return [send(opening), send(framed(self.framing, body)), hold(seen), *self.steps]


def half_line(api: Api) -> bytes:
    """The beginning of an event."""
    return api.event("3")[:CUT_AT]


def half_character(api: Api) -> bytes:
    """An event up to the middle of a character."""
    event = api.event("北")
    return event[:event.index(b"\xe5\x8c\x97") + 2]


def line_without_end(api: Api) -> bytes:
    """An event without the empty line that ends it."""
    return api.event("3")[:-1]


def _no(api: Api) -> bytes:
    return b""


def half_marks(api: Api) -> bytes:
    """A text that quotes what a stream ends with, in an event and in a comment."""
    quoted = 'data: [DONE]\n"finish_reason":"stop" "stop":true "type":"message_stop" [DONE]'
    return api.event(quoted)


def error_line(api: Api) -> bytes:
    """What older llama.cpp servers say: a line that is no data, so that no client sees it."""
    return b'error: {"code":500,"message":"boom","type":"server_error"}\n\n'


def page(api: Api) -> bytes:
    """What a proxy before the engine says."""
    return b"<html>\n<body>502 Bad Gateway</body>\n</html>\n"


_PARTS = {"": _no, "half_line": half_line, "half_character": half_character,
          "line_without_end": line_without_end, "quoted_ends": half_marks,
          "error_line": error_line, "page": page}
_WAYS: dict[str, Sequence[Step]] = {
    "reset": [reset], "close": [close], "clean_end": [LAST_CHUNK]}

FAULTS: dict[str, Fault] = {
    **{f"{part or 'nothing'}_then_{way}": Fault(steps, partial=partial)
       for part, partial in _PARTS.items() for way, steps in _WAYS.items()},
    "length_not_reached": Fault([close], "length", promised=lambda size: size + 1000),
    "length_not_reached_reset": Fault([reset], "length", half_line, lambda size: size + 1000),
    "length_too_small": Fault([], "length", half_line),
    "unframed_close": Fault([close], "close"),
    "unframed_half_line_close": Fault([close], "close", half_line),
    "unframed_reset": Fault([reset], "close", half_line),
    "chunk_size_broken": Fault([send(b"ZZ\r\nxx\r\n0\r\n\r\n"), close]),
    "chunk_size_broken_kept_open": Fault([send(b"ZZ\r\nxx\r\n"), silence]),
    "chunk_size_negative": Fault([send(b"-5\r\nhello\r\n0\r\n\r\n"), close], partial=half_line),
    "chunk_longer_than_said": Fault([send(b"3\r\n: x overlong\r\n0\r\n\r\n"), close]),
    "chunk_cut": Fault([send(b"500\r\n"), close]),
    "chunk_size_cut": Fault([send(b"5"), close], partial=half_line),
}

# An engine that says itself that it failed: nobody says so again.
TOLD: dict[str, Sequence[Step]] = {
    "clean_end": [LAST_CHUNK], "reset": [reset], "close": [close],
    "chunk_broken": [send(b"ZZ\r\n"), close],
}
