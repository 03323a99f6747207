"""Answers with clocks that stand still or tick, and lines as a client would read them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from typing import Any

from app import jsontext
from app.api.ollama.answer import Answer, chat_lines, generate_lines
from app.call import Reply
from app.errors import GatewayError, Kind
from tests.fakes.strict_json import strict_json

NOON = datetime(2026, 10, 30, 12, 0, 0, tzinfo=timezone.utc)
STAMP = "2026-10-30T12:00:00.000000Z"
HEAD = {"model": "Foo", "created_at": STAMP}
METRICS = {
    "total_duration": 7 * 10**9, "load_duration": 2 * 10**9,
    "prompt_eval_count": 1, "prompt_eval_duration": 3 * 10**9,
    "eval_count": 1, "eval_duration": 2 * 10**9,
}

Line = dict[str, Any]
Lines = Callable[[Iterable[bytes], Answer], Iterator[Line]]
SHAPES = {"chat": chat_lines, "generate": generate_lines}


def ticking() -> Callable[[], float]:
    """A clock that is at 105 s when read for the first time, and two seconds later each time."""
    seconds = itertools.count(105, 2)
    return lambda: float(next(seconds))


def answer(**changes: Any) -> Answer:
    """An answer to a request that came at 100 s and found the engine ready at 102 s."""
    fields: dict[str, Any] = {
        "model": "Foo", "style": "chat", "stream_type": True, "started": 100.0, "loaded": 102.0,
        "clock": lambda: NOON, "monotonic": ticking(),
    }
    return Answer(**{**fields, **changes})


def read(lines: Iterable[Line]) -> list[Line]:
    """The lines as they arrive: everything has to be JSON that a strict reader takes."""
    return [strict_json(jsontext.encode(line)) for line in lines]


def chat(*pieces: bytes, **changes: Any) -> list[Line]:
    """The lines of /api/chat for these pieces."""
    return read(chat_lines(pieces, answer(**changes)))


def generate(*pieces: bytes, **changes: Any) -> list[Line]:
    """The lines of /api/generate for these pieces."""
    return read(generate_lines(pieces, answer(**changes)))


def said(content: str, **more: Any) -> Line:
    """A line of /api/chat that is not the last."""
    return {**HEAD, "message": {"role": "assistant", "content": content, **more}, "done": False}


def done(reason: str = "stop", **metrics: int) -> Line:
    """The last line of /api/chat."""
    message = {"role": "assistant", "content": ""}
    return {**HEAD, "message": message, "done": True, "done_reason": reason, **METRICS, **metrics}


def broken(*pieces: bytes, kind: Kind = Kind.ENGINE_TIMEOUT, text: str = "silent") -> Reply:
    """A reply that fails behind these pieces."""

    def until_then() -> Iterator[bytes]:
        yield from pieces
        raise GatewayError(kind, text)

    return Reply(200, [], until_then())
