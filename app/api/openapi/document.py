"""The routes of the application as an OpenAPI document (spec.openapis.org/oas/v3.1.1)."""

import re
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask
from marshmallow.fields import Field

from app.api.openapi import errors
from app.api.openapi.operations import EVENTS, JSON, LINES, Operation, operations
from app.api.security.scopes import needed
from app.api.view import Part
from app.keys import Scope
from app.telemetry import build

_ABOUT = """\
One address in front of LLM engines: the APIs of OpenAI, Ollama, Juno and llama-server.

`HEAD` works wherever `GET` does. Beside the endpoints here, `POST /v1/<anything>` goes to the
engine of the `model` in its body, and `/upstream/<model>/<path>` to that model's engine as it is.
"""
_BREAKS = "as they come; where the answer breaks off, the last one is an error"
_STREAMS = {
    EVENTS: f'with `"stream": true` events {_BREAKS}',
    LINES: f'unless `"stream": false` lines {_BREAKS}',
}
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
_KEYS = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "api-key": {"type": "apiKey", "in": "header", "name": "api-key"},
}


def document(app: Flask, model_optional: bool) -> dict[str, Any]:
    """The document; ``model_optional`` is whether a request without a model means the default."""
    schemas = MarshmallowPlugin()
    spec = APISpec("Loop Gateway", build.version(), "3.1.0", [schemas],
                   info={"description": _ABOUT}, security=_security(Scope.INFER))
    converter: Any = schemas.converter
    converter.add_attribute_function(_part)
    for name, scheme in _KEYS.items():
        spec.components.security_scheme(name, scheme)
    errors.add_to(spec)
    for (path, method), operation in sorted(operations(model_optional).items()):
        scope = needed(method, path)
        told = {"tags": [operation.tag], "summary": _summary(app, path, method),
                "operationId": _id(path, method), **_operation(path, operation, scope)}
        spec.path(_PARAMETER.sub(r"{\1}", path), operations={method.lower(): told})
    found = spec.to_dict()
    return {"openapi": found.pop("openapi"), **found}


def _part(converter: Any, field: Field[Any], **_: Any) -> dict[str, Any]:
    """A field with a schema of its own, which apispec knows of its own kind of these only."""
    if not isinstance(field, Part):
        return {}
    found: dict[str, Any] = converter.resolve_nested_schema(field.view)
    return {"anyOf": [found, {"type": "null"}]} if field.allow_none else found


def _summary(app: Flask, path: str, method: str) -> str:
    """What the view says of itself, in its first line."""
    endpoint, _ = app.url_map.bind("").match(_PARAMETER.sub("x", path), method)
    said = app.view_functions[str(endpoint)].__doc__ or ""
    return said.partition("\n")[0].rstrip(".")


def _id(path: str, method: str) -> str:
    return "-".join([method.lower(), *re.findall(r"[a-z0-9]+", _PARAMETER.sub(r"\1", path))])


def _security(scope: Scope | None) -> list[dict[str, list[str]]]:
    """No key where the gateway has none; else one of these, with the scope."""
    return [{}, *({name: [scope.value]} for name in _KEYS)] if scope else []


def _operation(path: str, operation: Operation, scope: Scope | None) -> dict[str, Any]:
    told: dict[str, Any] = {"responses": _responses(path, operation, scope)}
    if scope is not Scope.INFER:
        told["security"] = _security(scope)
    names = [(name, "path") for name in _PARAMETER.findall(path)]
    names += [(name, "query") for name in operation.query]
    if names:
        told["parameters"] = [
            {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}
            for name, place in names
        ]
    if operation.body:
        told["requestBody"] = {"required": True, "content": _content(operation)}
    return told


def _content(operation: Operation) -> dict[str, Any]:
    if isinstance(operation.body, str):
        return {operation.body: {}}
    several = len(operation.body) > 1
    content: dict[str, Any] = {JSON: {
        "schema": {"allOf": list(operation.body)} if several else operation.body[0]}}
    if operation.form:
        content["multipart/form-data"] = {"schema": operation.body[0]}
    return content


def _responses(path: str, operation: Operation, scope: Scope | None) -> dict[str, Any]:
    found = errors.responses(path, operation, scope is not None)
    if operation.refused:
        return found | {str(operation.refused): errors.response_of(path, operation.refused)}
    answer = {"schema": operation.answer} if operation.answer else {}
    content: dict[str, Any] = {operation.content: answer} if operation.content else {}
    engines = operation.passes and not operation.answer and operation.content == JSON
    said = "the engine's answer" if engines else "the answer"
    if operation.stream:
        content[operation.stream] = {}
        said = f"{said}; {_STREAMS[operation.stream]}"
    if engines or operation.native:
        content["*/*"] = {}  # speech, say
    good = {"description": said, **({"content": content} if content else {})}
    return {str(status): good for status in operation.statuses} | found
