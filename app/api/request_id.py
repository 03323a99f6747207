"""The id under which a request stands in logs here, at the engine and at the client."""

import random
import re

from flask import Flask, Response, request

from app.api.recording import record

_HEADER = "X-Request-Id"
_SANE = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


def request_id() -> str:
    """The client's own id if it is short and plain, else one made here; the same all along."""
    made = record()
    if not made.request_id:
        given = request.headers.get(_HEADER, "")
        made.request_id = given if _SANE.fullmatch(given) else f"{random.getrandbits(128):032x}"
    return made.request_id


def register(app: Flask) -> None:
    """Let every response carry its request's id."""

    @app.after_request
    def add(response: Response) -> Response:
        response.headers[_HEADER] = request_id()
        return response
