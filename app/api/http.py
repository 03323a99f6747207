"""Between Flask and the road: request → Call, Reply → response, and JSON of our own."""

from collections.abc import Callable, Iterator
from typing import Any

from flask import Blueprint, Response, current_app, request
from flask.blueprints import BlueprintSetupState
from werkzeug.routing import Rule

from app import jsontext
from app.api import stream
from app.api.caller import caller
from app.api.paths import raw_target
from app.api.place import take_place
from app.api.recording import record
from app.api.request_id import request_id
from app.api.security import authorised
from app.api.services import Services
from app.api.terminal import Ending, grammar_of
from app.call import Body, Call, Reply


_STREAMS = ("text/event-stream", "application/x-ndjson")


def services() -> Services:
    """What the blueprints may use."""
    found: Services = current_app.extensions["loop"]
    return found


def any_method(blueprint: Blueprint, rule: str) -> Callable[[Callable[..., Response]], None]:
    """Registers a view for every method there is; Flask itself wants them all named."""

    def register(view: Callable[..., Response]) -> None:
        def add(state: BlueprintSetupState) -> None:
            endpoint = f"{blueprint.name}.{view.__name__}"
            state.app.url_map.add(Rule(rule, endpoint=endpoint))
            state.app.view_functions[endpoint] = view

        blueprint.record(add)

    return register


def call_of(body: Body, **facts: Any) -> Call:
    """The canonical form of the current request, which takes a place for it.

    ``facts`` are fields of Call that differ. Raises GatewayError where the caller may not use the
    model, or the path may mean another one to the engine.
    """
    take_place()
    given: dict[str, Any] = {
        "target": raw_target(request.environ),
        "model": body.model,
        "body": body,
        "request_id": request_id(),
        "method": request.method,
        "accept": request.headers.get("Accept", "*/*"),
        "client": request.environ.get("gunicorn.socket"),
        "caller": caller(),
        "record": record(),
        **facts,
    }
    return authorised(Call(**given), services().gateway)


def response_of(reply: Reply, parts: int = 1) -> Response:
    """The engine's answer as it is: status, passing headers, bytes as they come.

    ``parts`` is how many answers a stream holds, each with an end of its own.
    """
    kind = reply.header("content-type").partition(";")[0].strip().lower()
    if reply.header("content-encoding"):
        kind = ""  # still packed, in a way nobody here can look into
    response = Response(_pieces(reply, kind, parts), reply.status, content_type="")
    response.headers.clear()
    response.headers.extend(reply.headers)
    if kind not in _STREAMS and reply.length is not None:  # a stream may get a line of ours
        response.content_length = reply.length
    if kind in _STREAMS:
        response.headers["Cache-Control"] = "no-cache"
        response.headers["X-Accel-Buffering"] = "no"
    # Not in the generator's finally, which never runs where the generator never starts (HEAD).
    response.call_on_close(reply.close)
    return response


def json_response(value: Any, content_type: str = "application/json") -> Response:
    """A 200 with ``value`` as compact JSON."""
    return Response(jsontext.encode(value), content_type=content_type)


def _pieces(reply: Reply, kind: str, parts: int) -> Iterator[bytes]:
    made = record()
    if kind == "text/event-stream":
        return stream.events(reply, Ending(grammar_of(request.path), parts), request.path, made)
    if kind == "application/x-ndjson":
        return stream.lines(reply, made)
    return stream.content(reply, made)
