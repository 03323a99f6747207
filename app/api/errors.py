"""Every error in the shape of the API that was called: one table, one place."""

import logging
import math
from dataclasses import replace
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from app import jsontext
from app.api.recording import record
from app.api.request_id import request_id
from app.api.shapes import Fault, Shape, openai, shape_of, told
from app.api.unpacking import ACCEPTED
from app.errors import GatewayError, Kind

log = logging.getLogger(__name__)

_INVALID = "invalid_request_error"
_PERMISSION = "permission_error"
_RATE = "rate_limit_error"
_SERVER = "server_error"

# kind → status, OpenAI type, OpenAI code
_TABLE: dict[Kind, tuple[int, str, str | None]] = {
    Kind.INVALID_BODY: (400, _INVALID, None),
    Kind.INVALID_FIELD: (400, _INVALID, None),
    Kind.UNAUTHORIZED: (401, _INVALID, "invalid_api_key"),
    Kind.MODEL_NOT_ALLOWED: (403, _PERMISSION, "model_not_allowed"),
    Kind.SCOPE_MISSING: (403, _PERMISSION, "scope_missing"),
    Kind.HOST_NOT_ALLOWED: (403, _PERMISSION, "host_not_allowed"),
    Kind.ORIGIN_NOT_ALLOWED: (403, _PERMISSION, "origin_not_allowed"),
    Kind.UNKNOWN_MODEL: (404, _INVALID, "model_not_found"),
    Kind.UNKNOWN_URL: (404, _INVALID, None),
    Kind.METHOD_NOT_ALLOWED: (405, _INVALID, None),
    Kind.BODY_TOO_SLOW: (408, _INVALID, "request_timeout"),
    Kind.BODY_TOO_LARGE: (413, _INVALID, "request_too_large"),
    Kind.UNSUPPORTED_CODING: (415, _INVALID, "unsupported_encoding"),
    Kind.RATE_LIMITED: (429, _RATE, "rate_limit_exceeded"),
    Kind.QUEUE_FULL: (429, _RATE, "rate_limit_exceeded"),
    Kind.CLIENT_GONE: (499, _INVALID, "client_closed_request"),
    Kind.INTERNAL: (500, _SERVER, "internal_error"),
    Kind.UPSTREAM_ERROR: (502, _SERVER, "upstream_error"),
    Kind.ENGINE_UNAVAILABLE: (502, _SERVER, "engine_unavailable"),
    Kind.ENGINE_NOT_READY: (503, _SERVER, "service_unavailable"),
    Kind.NO_MODEL_LOADED: (503, _SERVER, "service_unavailable"),
    Kind.BUSY: (503, _SERVER, "service_unavailable"),
    Kind.STOPPING: (503, _SERVER, "service_unavailable"),
    Kind.ENGINE_TIMEOUT: (504, _SERVER, "engine_timeout"),
}

# After these the rest of the request is still on its way, and no next one can be found behind it.
_UNREAD = {Kind.BODY_TOO_SLOW, Kind.BODY_TOO_LARGE}
# What the client is told beside the error: how it would be right (RFC 9110, 11.6.1 and 15.5.16).
_MORE = {
    Kind.UNAUTHORIZED: [("WWW-Authenticate", "Bearer")],
    Kind.UNSUPPORTED_CODING: [("Accept-Encoding", ACCEPTED)],
}


def codes() -> dict[int, list[str]]:
    """The statuses that errors have, and the codes of each."""
    found: dict[int, list[str]] = {}
    for status, _, code in _TABLE.values():
        known = found.setdefault(status, [])
        if code and code not in known:
            known.append(code)
    return found


def register(app: Flask) -> None:
    """Let every error of the app, also for URLs that no blueprint knows, be rendered here."""
    app.register_error_handler(GatewayError, render)
    app.register_error_handler(HTTPException, _routing)
    app.register_error_handler(Exception, _unforeseen)


def render(error: GatewayError) -> Response:
    """The response for an error, in the shape of the request's path."""
    record().failed(error)
    status, body = document(error, request.path)
    response = Response(body, status, content_type=shape_of(request.path).content_type)
    if status in (429, 503):
        response.headers["Retry-After"] = str(max(1, math.ceil(error.wait or 0)))
    if error.kind in _UNREAD:
        response.headers["Connection"] = "close"
    response.headers.extend(_MORE.get(error.kind, ()))
    return response


def document(error: GatewayError, path: str) -> tuple[int, bytes]:
    """Status and JSON body of an error for a path, in the shape of the API that the path is of."""
    fault, shape = _fault(error), shape_of(path)
    if shape is Shape.OLLAMA and error.kind is Kind.UNKNOWN_MODEL:
        fault = replace(fault, message=f"model '{error.model}' not found")
    return fault.status, jsontext.encode(told(fault, shape))


def openai_error(error: GatewayError) -> dict[str, Any]:
    """An error as the object that OpenAI's clients read."""
    return openai(_fault(error))


def _fault(error: GatewayError) -> Fault:
    status, kind, code = _TABLE[error.kind]
    return Fault(status, error.message, kind, code, error.param)


def _routing(error: HTTPException) -> Response:
    """What Flask and Werkzeug raise: an unknown URL or method, or a request they cannot read."""
    if isinstance(error, MethodNotAllowed):
        text = f"the method {request.method} is not allowed for {request.path}"
        response = render(GatewayError(Kind.METHOD_NOT_ALLOWED, text))
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
        return response
    if isinstance(error, NotFound):
        return render(GatewayError(Kind.UNKNOWN_URL, f"there is no {request.path} here"))
    if error.code and error.code < 500:
        return render(GatewayError(Kind.INVALID_BODY, f"the request is not valid: {error.name}"))
    return _unforeseen(error)


def _unforeseen(error: Exception) -> Response:
    """The outermost edge: the trace goes to the log, the id under which it stands to the client."""
    found = request_id()
    log.error("request %s: %s %s failed", found, request.method, request.path, exc_info=error)
    text = f"the gateway failed; its log says more about request {found}"
    return render(GatewayError(Kind.INTERNAL, text))
