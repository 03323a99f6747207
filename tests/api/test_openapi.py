"""The OpenAPI document: every route is in it, it is valid, and what it says is so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from flask.testing import FlaskClient
from openapi_spec_validator import validate

from app.launcher.openapi import CHECKED_IN, document, main
from tests.api.conftest import MODEL

DOCUMENT: dict[str, Any] = document()
CATCH_ALL = {"/v1/<path:rest>", "/upstream/<path:rest>"}
Operation = tuple[str, str, dict[str, Any]]


def spelled(rule: str) -> str:
    """A rule as OpenAPI writes it."""
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule)


def described() -> Iterator[Operation]:
    """Path, method and operation of each that is in the document."""
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            yield path, method.upper(), operation


OPERATIONS = list(described())


def test_it_is_valid() -> None:
    """By the schema of OpenAPI 3.1."""
    assert DOCUMENT["openapi"] == "3.1.0"
    validate(DOCUMENT)


def test_the_one_that_is_checked_in_is_this_one() -> None:
    """If not: scripts/openapi writes it anew."""
    assert yaml.safe_load(CHECKED_IN.read_text("utf-8")) == DOCUMENT


def test_it_is_written_anew(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """By the command behind scripts/openapi."""
    assert main([str(tmp_path / "found.yaml")]) == 0
    assert (tmp_path / "found.yaml").read_bytes() == CHECKED_IN.read_bytes()
    assert capsys.readouterr().out.endswith("found.yaml\n")


def test_every_route_is_in_it(client: FlaskClient) -> None:
    """With each of its methods but HEAD beside GET, and OPTIONS."""
    for rule in client.application.url_map.iter_rules():
        methods = (rule.methods or set()) - {"OPTIONS"}
        methods -= {"HEAD"} if "GET" in methods else set()
        for method in () if rule.rule in CATCH_ALL else methods:
            assert method.lower() in DOCUMENT["paths"][spelled(rule.rule)], (rule.rule, method)


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS)
def test_every_operation_is_there(
        client: FlaskClient, path: str, method: str, operation: dict[str, Any]) -> None:
    """It is no unknown URL, and says what it is for and what can go wrong."""
    answer = client.open(re.sub(r"{\w+}", "x", path), method=method, buffered=True)
    assert answer.status_code not in (405, 500)
    assert b"there is no /" not in answer.data
    assert operation["summary"] and operation["tags"] and operation["operationId"]
    assert {"403", "500"} <= set(operation["responses"])
    if "504" in operation["responses"]:  # an engine is asked
        assert {"400", "404", "502", "503"} <= set(operation["responses"])


def test_operations_have_ids_of_their_own() -> None:
    """Code is made of them."""
    found = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(found) == len(set(found))


def test_streams_are_described() -> None:
    """With their media type, and how they break off."""
    streams = {"text/event-stream", "application/x-ndjson"}
    found = {path: operation["responses"]["200"] for path, _, operation in OPERATIONS
             if streams & set(operation["responses"].get("200", {}).get("content", ()))}
    assert {"/v1/chat/completions", "/v1/messages", "/v1/inference/stream", "/api/chat",
            "/api/generate", "/api/pull", "/completion"} <= set(found)
    assert all("breaks off" in answer["description"] for path, answer in found.items()
               if path != "/v1/inference/stream")


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema behind its reference."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = DOCUMENT["components"]["schemas"][name] if name else schema
    return found


def fields_of(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Each field of an operation's body, its schema, and whether it is needed."""
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    for part in body.get("schema", {}).get("allOf", [body.get("schema", {})]):
        schema = resolved(part)
        for name, field in schema.get("properties", {}).items():
            yield name, field, name in schema.get("required", ())


VALUES: list[tuple[str, Any]] = [
    ("string", "5m"), ("number", 1.5), ("integer", 2), ("boolean", True), ("array", []),
    ("object", {})]
# Of two names for the model only one is looked at.
UNCHECKED = {(f"/api/{path}", "name") for path in ("create", "delete", "pull", "show")}
GOOD = {"model": MODEL, "modelId": MODEL, "stream": False, "prompt": "hi", "input": "hi",
        "messages": [{"role": "user", "content": "hi"}]}


def wrong_bodies(path: str, operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Good bodies but for one field: of another type, or not there although it is needed."""
    for name, field, needed in fields_of(operation):
        types = field.get("type", ["object", "null"])
        types = {types} if isinstance(types, str) else set(types)
        types |= {"integer"} if "number" in types else set()
        if (path, name) not in UNCHECKED:
            yield from ({**GOOD, name: value} for kind, value in VALUES if kind not in types)
        if needed:
            yield {key: value for key, value in GOOD.items() if key != name}


@pytest.mark.parametrize(("path", "method", "operation"), [
    each for each in OPERATIONS if "requestBody" in each[2]])
def test_fields_are_checked_as_it_says(
        client: FlaskClient, path: str, method: str, operation: dict[str, Any]) -> None:
    """Whatever does not fit is a 400, before an engine sees it."""
    for body in wrong_bodies(path, operation):
        answer = client.open(path, method=method, data=json.dumps(body), buffered=True)
        unnamed = path == "/api/generate" and "model" not in body
        assert answer.status_code == (404 if unnamed else 400), (body, answer.data)
