"""Between Flask and the road: request → Call, Reply → response, and JSON of our own."""

from typing import Any

from flask import Response, current_app, request

from app import jsontext
from app.api.request_id import request_id
from app.api.services import Services
from app.call import Body, Call, Reply


def services() -> Services:
    """What the blueprints may use."""
    found: Services = current_app.extensions["loop"]
    return found


def call_of(body: Body) -> Call:
    """The canonical form of the current request."""
    return Call(request.path, body.fields.get("model"), body, request_id())


def response_of(reply: Reply) -> Response:
    """The engine's answer as it is: status, passing headers, bytes."""
    response = Response(reply.body, reply.status, content_type="")
    response.headers.clear()
    response.headers.extend(reply.headers)
    response.content_length = len(reply.body)
    return response


def json_response(value: Any, content_type: str = "application/json") -> Response:
    """A 200 with ``value`` as compact JSON."""
    return Response(jsontext.encode(value), content_type=content_type)
