"""An engine's reply as Ollama's response: lines as they come, or one object."""

import time
from collections.abc import Iterator
from typing import Any

from flask import Response, g

from app import jsontext
from app.api.http import json_response
from app.api.ollama.answer import Answer, whole
from app.api.ollama.request.ask import Ask
from app.api.ollama.target import Target
from app.call import Reply

JSON = "application/json; charset=utf-8"


def arrived() -> float:
    """When the request arrived, on the monotonic clock: the first reading in it."""
    if "arrived" not in g:
        g.arrived = time.monotonic()
    return float(g.arrived)


def answer_of(reply: Reply, ask: Ask, target: Target, **facts: Any) -> Answer:
    """How the reply is to be read; ``facts`` are further fields of Answer."""
    kind = reply.header("content-type").partition(";")[0].strip().lower()
    return Answer(
        model=target.asked, style=ask.style, stream_type=kind == "text/event-stream",
        started=arrived(), loaded=time.monotonic(), **facts,
    )


def rendered(reply: Reply, lines: Iterator[dict[str, Any]], stream: bool) -> Response:
    """The response made of the lines; closes the reply when they are done with, or on an error.

    Blocks until the first line is there. Raises what the lines raise before it.
    """
    try:
        if not stream:
            response = json_response(whole(lines), JSON)
            reply.close()
            return response
        first = next(lines)
    except BaseException:
        reply.close()
        raise
    response = Response(_encoded(first, lines), content_type="application/x-ndjson")
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Accel-Buffering"] = "no"
    response.call_on_close(reply.close)
    return response


def _encoded(first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    yield jsontext.encode(first) + b"\n"
    for line in rest:
        yield jsontext.encode(line) + b"\n"
