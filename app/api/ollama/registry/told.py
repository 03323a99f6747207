"""What takes a while, told as Ollama tells it: a line for each step, or the last one alone."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from flask import Response, request

from app import jsontext
from app.api.http import json_response, services
from app.api.ollama.refusal import of_catalog
from app.api.recording import record
from app.catalog.problems import Cancelled, CatalogError, NotFound
from app.catalog.progress import Events, Progress
from app.errors import GatewayError, Kind
from app.record import Record


def told(events: Events, stream: bool, cancel: Callable[[], None] = lambda: None) -> Response:
    """The response made of the events, which are ended when the client leaves.

    ``cancel``, which must not block, is called then from another thread. Blocks until the first
    event is there, without ``stream`` until the last. Raises Refusal for what fails before that.
    """
    held = ExitStack()
    try:
        held.callback(events.close)
        client = request.environ.get("gunicorn.socket")
        departure = held.enter_context(services().gateway.watch(client))
        departure.attach(cancel)
        first = next(events)
        if not stream:
            for first in events:
                pass
            held.close()
            return json_response(_line(first))
    except CatalogError as error:
        held.close()
        if isinstance(error, Cancelled):
            raise departure.error() from error
        raise of_catalog(error) from error
    except BaseException:
        held.close()
        raise
    lines = _lines(first, events, record(), departure.error)
    response = Response(lines, content_type="application/x-ndjson")
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Accel-Buffering"] = "no"
    response.call_on_close(held.close)
    return response


def _lines(
    first: Progress, rest: Events, made: Record, cancelled: Callable[[], GatewayError]
) -> Iterator[bytes]:
    """The lines, and one for the error where they break off; ``cancelled`` says why that was."""
    yield jsontext.encode(_line(first)) + b"\n"
    try:
        for event in rest:
            yield jsontext.encode(_line(event)) + b"\n"
    except (CatalogError, GatewayError) as error:
        made.broke_off(cancelled().kind if isinstance(error, Cancelled) else _kind(error))
        yield jsontext.encode({"error": str(error)}) + b"\n"


def _kind(error: CatalogError | GatewayError) -> Kind:
    if isinstance(error, GatewayError):
        return error.kind
    return Kind.UNKNOWN_MODEL if isinstance(error, NotFound) else Kind.UPSTREAM_ERROR


def _line(event: Progress) -> dict[str, Any]:
    """ProgressResponse (github.com/ollama/ollama, api/types.go): what is empty is left out."""
    found = {"status": event.status, "digest": event.digest, "total": event.total,
             "completed": event.completed}
    return {key: value for key, value in found.items() if value}
