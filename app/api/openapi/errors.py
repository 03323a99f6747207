"""The errors of each API as OpenAPI's responses: statuses, shapes, and what they mean."""

from typing import Any

from apispec import APISpec
from marshmallow import Schema, fields

from app.api.errors import codes
from app.api.openapi.operations import Operation
from app.api.shapes import Shape, phrase, shape_of

_NULLABLE: dict[str, Any] = {"required": True, "allow_none": True}
_ALWAYS = {403, 500}  # of hosts and origins, and of the gateway itself
_OF_KEYS = {401, 429}
_OF_MODELS = {400, 404, 408, 409, 413, 415, 501, 502, 503, 507}  # of the registry and the hub
_UNTOLD = {405, 499}  # of methods that are not described; to clients that have left
_LATER = {429, 503}  # with Retry-After
_ANYTHING: dict[str, Any] = {"content": {"application/json": {}, "*/*": {}}}
_ENGINES = "EnginesAnswer"
_RETRY_AFTER = {"description": "seconds", "schema": {"type": "integer", "minimum": 1}}


class OpenAiErrorObject(Schema):
    """What OpenAI's clients read of an error."""

    message = fields.String(required=True)
    type = fields.String(required=True)
    param = fields.String(**_NULLABLE)
    code = fields.String(**_NULLABLE)


class OpenAiError(Schema):
    """An error of every route but those of the others."""

    error = fields.Nested(OpenAiErrorObject, required=True)


class OllamaError(Schema):
    """An error of /api."""

    error = fields.String(required=True)


class AnthropicErrorObject(Schema):
    """What Anthropic's clients read of an error."""

    type = fields.String(required=True)
    message = fields.String(required=True)


class AnthropicError(Schema):
    """An error of /v1/messages."""

    type = fields.String(required=True, metadata={"enum": ["error"]})
    error = fields.Nested(AnthropicErrorObject, required=True)


class Problem(Schema):
    """An error of the gateway's own routes (RFC 9457)."""

    type = fields.String(required=True)
    title = fields.String(required=True)
    status = fields.Integer(required=True)
    detail = fields.String(required=True)
    code = fields.String(**_NULLABLE)
    param = fields.String(**_NULLABLE)


_SCHEMAS: dict[Shape, type[Schema]] = {
    Shape.OPENAI: OpenAiError, Shape.OLLAMA: OllamaError, Shape.ANTHROPIC: AnthropicError,
    Shape.PROBLEM: Problem,
}


def add_to(spec: APISpec) -> None:
    """Add one response for each status in each shape, and one that may be the engine's own."""
    statuses = {status: list[str]() for status in _OF_MODELS} | codes()
    for shape, schema in _SCHEMAS.items():
        spec.components.schema(schema.__name__, schema=schema)
        for status, found in statuses.items():
            told = _response(status, found, shape)
            spec.components.response(_name(shape, status), told)
            if shape is not Shape.OLLAMA:
                spec.components.response(_name(shape, status, passed=True), _or_engines(told))
    spec.components.response(_ENGINES, {"description": "what else the engine says", **_ANYTHING})


def responses(path: str, operation: Operation, needs_key: bool) -> dict[str, Any]:
    """What can go wrong with an operation, by status."""
    told = _ALWAYS | set(operation.errors) | (_OF_KEYS if needs_key else set())
    if operation.asks:
        told |= codes().keys() - _UNTOLD
    if operation.changes:
        told |= _OF_MODELS
    passed = operation.passes
    found = {str(status): _name(shape_of(path), status, passed and _may_pass(status, operation))
             for status in sorted(told)}
    return found | ({"default": _ENGINES} if passed else {})


def response_of(path: str, status: int) -> str:
    """The name of the response with this status, in the shape of the path's API."""
    return _name(shape_of(path), status)


def _may_pass(status: int, operation: Operation) -> bool:
    return operation.native or status < 500 or status == 503


def _name(shape: Shape, status: int, passed: bool = False) -> str:
    return f"{_SCHEMAS[shape].__name__}{'OrEngines' if passed else ''}{status}"


def _response(status: int, found: list[str], shape: Shape) -> dict[str, Any]:
    said = f"{phrase(status)} ({', '.join(found)})" if found else phrase(status)
    content = {shape.content_type: {"schema": _SCHEMAS[shape].__name__}}
    later = {"headers": {"Retry-After": _RETRY_AFTER}} if status in _LATER else {}
    return {"description": said, "content": content, **later}


def _or_engines(told: dict[str, Any]) -> dict[str, Any]:
    """The response, or one with which an engine refuses: JSON of its own, or of another type."""
    own = {kind: {"schema": {"anyOf": [media["schema"], {}]}}
           for kind, media in told["content"].items()}
    said = f"{told['description']}; or the engine's own"
    return {**told, "description": said, "content": {**own, "*/*": {}}}
