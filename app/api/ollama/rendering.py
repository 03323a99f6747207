"""An engine's reply as Ollama's response: lines as they come, or one object."""

import time
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from flask import Response

from app import jsontext
from app.api.http import json_response
from app.api.ollama.answer import Answer, FailureLine, whole
from app.api.ollama.request.ask import Ask
from app.api.ollama.target import Target
from app.api.recording import record
from app.call import Reply
from app.errors import GatewayError, Kind
from app.record import Record

JSON = "application/json; charset=utf-8"


def answer_of(reply: Reply, ask: Ask, target: Target, **facts: Any) -> Answer:
    """How the reply is to be read; ``facts`` are further fields of Answer."""
    kind = reply.header("content-type").partition(";")[0].strip().lower()
    return Answer(
        model=target.asked, style=ask.style, stream_type=kind == "text/event-stream",
        started=record().began, loaded=time.monotonic(), **facts,
    )


class Held:
    """An engine's reply, which is closed once, by whoever is done with it first."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._open = True
        self._over = False

    def over(self) -> None:
        """All that it had to say has been taken."""
        self._over = True

    def close(self) -> None:
        """Let the engine go; blocks for a moment where the end of the body is not there yet."""
        if self._open:
            self._open = False
            if self._over:
                self._reply.finish()
            self._reply.close()


def rendered(held: Held, lines: Iterator[dict[str, Any]], stream: bool) -> Response:
    """The response made of the lines; closes the reply when they are done with, or on an error.

    Blocks until the first line is there. Raises what the lines raise before it.
    """
    try:
        if not stream:
            response = json_response(whole(lines), JSON)
            held.over()
            held.close()
            return response
        first = next(lines)
    except BaseException:
        held.close()
        raise
    encoded = _encoded(chain([first], lines), held, record())
    response = Response(encoded, content_type="application/x-ndjson")
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Accel-Buffering"] = "no"
    response.call_on_close(held.close)
    return response


def _encoded(lines: Iterable[dict[str, Any]], held: Held, made: Record) -> Iterator[bytes]:
    for line in lines:
        yield jsontext.encode(line) + b"\n"
    if isinstance(line, FailureLine):
        cause = line.cause
        made.broke_off(cause.kind if isinstance(cause, GatewayError) else Kind.UPSTREAM_ERROR)
    held.over()
