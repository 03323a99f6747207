"""Single hot functions, each timed by itself: where a change of one of them shows first."""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable, Iterator

from app import jsontext
from app.api.ollama.answer import Answer, chat_lines
from app.api.openai.schemas import NamedChatView
from app.api.terminal import Ending, grammar_of
from app.api.view import first_problem
from app.catalog.names import normal
from app.engines import chunked
from app.hosts import AllowedHosts
from tests.bench.exchange import CHAT, MODEL, STREAM_END, event, question

_EVENTS = 1000
_REPEATS = 7


def table() -> str:
    """The shortest of several times of each function, in µs. Blocks for some seconds."""
    return "\n".join(f"{label:<52}{1e6 * _shortest(act) / times:9.2f} µs"
                     for label, times, act in _functions())


def _functions() -> Iterator[tuple[str, int, Callable[[], object]]]:
    """Label, how many times the function does what the label says, the function."""
    body = question({}).partition(b"\r\n\r\n")[2]
    fields, view = json.loads(body), NamedChatView()
    long = {**fields, "messages": fields["messages"] * 100}
    hosts = AllowedHosts("127.0.0.1", ())
    yield "a chat request read as strict JSON", 1, lambda: jsontext.decode(body)
    yield "a chat request checked, 2 messages", 1, lambda: first_problem(fields, view)
    yield "a chat request checked, 200 messages", 1, lambda: first_problem(long, view)
    yield "the header Host checked", 1, lambda: hosts.allows("127.0.0.1:11434")
    yield "a model's name made comparable", 1, lambda: normal(MODEL)
    pieces = [*(event(number, number) for number in range(_EVENTS)), STREAM_END]
    wire = b"".join(pieces)
    events = list(chunked.read(wire, bytes))
    yield "an event read from its chunk", _EVENTS, lambda: _read(pieces)
    yield "an event followed to the end of its stream", _EVENTS, lambda: _follow(events)
    yield "an event made a line of /api/chat", _EVENTS, lambda: _lines(events)


def _read(pieces: list[bytes]) -> None:
    for _ in chunked.read(b"", iter(pieces).__next__):
        pass


def _follow(events: list[bytes]) -> None:
    ending = Ending(grammar_of(CHAT), 1)
    for piece in events:
        ending.see(piece)


def _lines(events: list[bytes]) -> None:
    answer = Answer(MODEL, "chat", stream_type=True, started=0.0, loaded=0.0)
    for line in chat_lines(events, answer):
        jsontext.encode(line)


def _shortest(act: Callable[[], object]) -> float:
    timer = timeit.Timer(act)
    number, _ = timer.autorange()
    return min(timer.repeat(_REPEATS, max(1, number // 4))) / max(1, number // 4)
