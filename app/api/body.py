"""Reads a request's body: whole, within its limits, strict JSON, then a view of it checked."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import current_app, request
from gunicorn.http.errors import ParseException
from marshmallow import Schema

from app import jsontext
from app.api.announced import Announced
from app.api.extensions import ExtensionsView, extended, taken_out
from app.api.payload import FormBody, JsonBody, OpaqueBody, form
from app.api.place import take_place
from app.api.remote_media import refuse_remote_media
from app.api.unpacking import decoders, unpacked
from app.api.view import first_problem
from app.client_socket import Overdue
from app.errors import GatewayError, Kind
from app.places import stopping

_PIECE = 1024 * 1024  # bytes asked for at once
_DRAIN = 4  # × the limit: how much of a body that is too large is taken off the wire
_BOM = b"\xef\xbb\xbf"
_EXTENSIONS = ExtensionsView()


def read_json(schema: Schema) -> JsonBody:
    """The JSON object of a call for an engine, with the fields that ``schema`` names checked.

    As ``read_aside``; Juno's fields are checked as well and taken out. Takes a place, so that slow
    clients take none of the threads that answer what needs no engine. Raises GatewayError for media
    that the engine would fetch, too.
    """
    take_place()
    body = _object("the request body is not valid JSON")
    if not current_app.config["ALLOW_REMOTE_MEDIA"]:
        refuse_remote_media(body.fields)
    if not extended(body.fields):
        _check(body.fields, schema)
        return body
    _check(body.fields, schema, _EXTENSIONS)
    return JsonBody(None, *taken_out(body.fields), body.path)


def read_aside(schema: Schema, empty: str) -> JsonBody:
    """The request's JSON object, with the fields that ``schema`` names checked.

    The content type does not matter. Blocks until the body is whole, at most server.body-timeout.
    Raises GatewayError: the body is no JSON object, too large, too slow or cut (``empty`` is what
    it says of no body at all), packed as nobody here can unpack it, or the first field by path is
    wrong.
    """
    body = _object(empty)
    _check(body.fields, schema)
    return body


def read_any(schema: Schema) -> JsonBody | FormBody:
    """The body as ``read_json`` gives it, or a multipart form. Blocks and raises alike."""
    if request.mimetype == "multipart/form-data":
        take_place()
        return form(_plain(), request.headers["Content-Type"])
    return read_json(schema)


def read_opaque() -> OpaqueBody:
    """The request's body, whatever it is, with its content type. Blocks and raises alike."""
    take_place()
    return OpaqueBody(_plain(), request.headers.get("Content-Type", ""))


def _object(empty: str) -> JsonBody:
    raw = _plain()
    if not raw:
        raise GatewayError(Kind.INVALID_BODY, empty)
    try:
        fields = jsontext.decode(raw)
    except jsontext.JsonError as error:
        raise GatewayError(Kind.INVALID_BODY, f"the request body is {error}") from None
    if not isinstance(fields, dict):
        raise GatewayError(Kind.INVALID_BODY, "the request body is not a JSON object")
    return JsonBody(raw.removeprefix(_BOM) if raw.startswith(_BOM) else raw, fields,
                    path=request.path)


def _check(fields: dict[str, Any], *views: Schema) -> None:
    problem = first_problem(fields, *views)
    if problem:
        path, rule = problem
        raise GatewayError(Kind.INVALID_FIELD, f"'{path}' {rule}", param=path)


def _plain() -> bytearray:
    """The body's bytes as they were before they were packed; raises GatewayError."""
    limit = current_app.config["MAX_BODY"]
    new = decoders(request.environ.get("HTTP_CONTENT_ENCODING", ""))
    raw = _read(limit)
    if new is None or not raw:
        return raw
    plain = unpacked(raw, new, limit)
    if plain is None:
        raise _too_large(limit)
    return plain


def _read(limit: int) -> bytearray:
    """The body's bytes; raises GatewayError where it is over ``limit``, cut, broken or too slow."""
    body, announced = bytearray(), Announced(request.environ, limit)
    size = 0
    if announced.refusable or announced.size > limit * _DRAIN:
        raise _too_large(limit)
    try:
        with broken_body():
            for piece in pieces(request.environ):
                size += len(piece)
                announced.note(size)
                if not announced.excess:
                    body += piece
                elif size > limit * _DRAIN:
                    break
                else:
                    # Clients read the answer only after they have sent everything: take it, drop it
                    body.clear()
    except GatewayError as error:
        if error.kind is Kind.STOPPING or not announced.excess:
            raise
    if announced.excess:
        raise _too_large(limit)
    return body


def _too_large(limit: int) -> GatewayError:
    return GatewayError(Kind.BODY_TOO_LARGE, f"the request body is larger than {limit} bytes")


@contextmanager
def broken_body() -> Iterator[None]:
    """Make what reading a body raises a GatewayError: it is cut, broken or too slow.

    Or it is not waited for any more, as the gateway is about to end.
    """
    try:
        yield
    except Overdue:
        raise GatewayError(Kind.BODY_TOO_SLOW, "the request body did not arrive in time") from None
    except (OSError, ParseException):
        if getattr(request.environ.get("gunicorn.socket"), "interrupted", False):
            raise stopping() from None
        raise GatewayError(Kind.INVALID_BODY, "the request body is cut short or broken") from None


def pieces(environ: dict[str, Any], at_once: int = _PIECE) -> Iterator[bytes]:
    """The body in pieces of so many bytes; raises OSError where fewer came than were announced."""
    chunked = "chunked" in environ.get("HTTP_TRANSFER_ENCODING", "").lower()
    missing = None if chunked else int(environ.get("CONTENT_LENGTH") or 0)
    source = environ["wsgi.input"]
    while missing is None or missing > 0:
        piece = source.read(at_once if missing is None else min(at_once, missing))
        if not piece:
            break
        missing = None if missing is None else missing - len(piece)
        yield piece
    if missing:
        raise ConnectionResetError("the client sent less than it announced")
