"""An engine's reply as Juno's response: one object, or events as they come."""

from collections.abc import Iterator
from typing import Any

from flask import Response

from app import jsontext
from app.api.http import json_response, response_of
from app.api.juno import response
from app.api.juno.ask import Ask
from app.api.juno.response import Said
from app.api.recording import record
from app.call import Reply
from app.errors import GatewayError
from app.record import Record


def whole(reply: Reply, ask: Ask) -> Response:
    """One object; the engine's own refusal as it is. Closes the reply. Raises GatewayError."""
    if not reply.successful:
        return response_of(reply)
    try:
        found = response.answer(reply.body, ask.request_id)
    finally:
        reply.close()
    return json_response({**found, "modelId": ask.model, "latencyMs": ask.milliseconds})


def as_stream(reply: Reply, ask: Ask) -> Response:
    """A stream of events; the engine's own refusal as it is.

    Blocks until the first event is there, raises GatewayError for what fails before it. Closes the
    reply when the events are done with, or on an error.
    """
    if not reply.successful:
        return response_of(reply)
    kind = reply.header("content-type").partition(";")[0].strip().lower()
    reading = response.streamed if kind == "text/event-stream" else response.at_once
    said = _noted(reading(reply.pieces), record())
    events = response.events(said, ask.request_id)
    try:
        first = next(events)
    except BaseException:
        reply.close()
        raise
    found = Response(_encoded(first, events), content_type="text/event-stream")
    found.headers["Cache-Control"] = "no-cache"
    found.headers["X-Accel-Buffering"] = "no"
    # Not in the generator's finally, which never runs where the generator never starts.
    found.call_on_close(reply.close)
    return found


def _noted(said: Iterator[Said], made: Record) -> Iterator[Said]:
    """What is said, as it comes; where it breaks off the record knows."""
    try:
        yield from said
    except GatewayError as error:
        made.broke_off(error.kind)
        raise


def _encoded(first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    yield _event(first)
    yield from map(_event, rest)


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + jsontext.encode(value) + b"\n\n"
