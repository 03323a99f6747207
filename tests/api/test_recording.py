"""The record of a request: one line of log for each, whatever happens, with no secret in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask, Response
from flask.testing import FlaskClient
from werkzeug.test import EnvironBuilder

from app.telemetry.access_log import FIELDS, AccessLog
from tests.api.conftest import MODEL, Build
from tests.api.holders import bearer, holder, key_of
from tests.fakes.strict_json import strict_json

CHAT = "/v1/chat/completions"
Lines = list[dict[str, Any]]


class Written(list[bytes]):
    """The lines that were written."""

    def records(self) -> Lines:
        """Each line, which is one JSON object with all fields in their order."""
        found = [strict_json(line) for line in self]
        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in self)
        assert all(tuple(each) == FIELDS for each in found)
        return found


@pytest.fixture
def written() -> Written:
    """What the application of this test writes."""
    return Written()


@pytest.fixture
def watched(build: Build, written: Written) -> Callable[..., FlaskClient]:
    """A function that builds an application whose log is ``written``."""
    def built(**settings: Any) -> FlaskClient:
        return build(access_log=AccessLog("json", written.append), **settings)
    return built


def chat(content: str = "hi", model: str = MODEL, **fields: Any) -> dict[str, Any]:
    """The body of a chat."""
    return {"model": model, "messages": [{"role": "user", "content": content}], **fields}


CASES: list[tuple[str, str, Any, dict[str, Any]]] = [
    ("GET", "/v1/models", None, {"route": "/v1/models", "status": 200}),
    ("HEAD", "/api/tags", None, {"route": "/api/tags", "status": 200, "bytes_out": 0}),
    ("GET", "/v1/models/a%2Fb", None, {"route": "/v1/models/<path:name>", "status": 404,
                                       "error": "unknown_model", "model": "a/b"}),
    ("GET", "/nope?key=secret", None, {"route": None, "status": 404, "error": "unknown_url"}),
    ("DELETE", "/v1/chat/completions", None, {"route": "/v1/<path:rest>", "status": 405}),
    ("DELETE", "/api/chat", None, {"route": None, "status": 405, "error": "method_not_allowed"}),
    ("POST", "/v1/embeddings", {"model": "x"}, {"route": "/v1/embeddings", "model": "x"}),
    ("POST", "/v1/else", {"model": "x"}, {"route": "/v1/<path:rest>", "status": 404}),
    ("POST", CHAT, b"{", {"status": 400, "error": "invalid_body", "model": None}),
    ("POST", CHAT, chat(model=MODEL.upper()), {
        "status": 200, "model": MODEL, "prompt_tokens": 7, "completion_tokens": 5}),
    ("POST", CHAT, chat("status:418"), {"status": 418, "error": None, "completion_tokens": None}),
    ("POST", CHAT, chat("status:500"), {"status": 502, "error": "upstream_error"}),
    ("POST", CHAT, chat(model="nope"), {
        "status": 404, "error": "unknown_model", "model": "nope", "engine": None}),
    ("POST", "/api/chat", chat(model="nope"), {"status": 404, "model": "nope"}),
    ("POST", CHAT, chat(model="down"), {"status": 502, "error": "engine_unavailable"}),
    ("POST", "/api/me", {}, {"status": 401, "route": "/api/me"}),
    ("POST", "/api/user/keys/x", {}, {"status": 405}),
    ("DELETE", "/api/user/keys/topsecret", None, {"route": "/api/user/keys/<key>", "status": 401}),
]


@pytest.mark.parametrize(("method", "path", "body", "wanted"), CASES)
def test_every_request_has_one_record(
        watched: Callable[..., FlaskClient], written: Written, method: str, path: str, body: Any,
        wanted: dict[str, Any]) -> None:
    """With the rule that fits instead of the path, and the model by its own name."""
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body)
    headers = {"Authorization": "Bearer topsecret", "X-Request-Id": "id-1", "Cookie": "topsecret"}
    answer = watched().open(path, method=method, data=data, headers=headers, buffered=True)
    [found] = written.records()
    assert wanted.items() <= found.items(), found
    assert (found["method"], found["status"]) == (method, answer.status_code)
    assert (found["request_id"], found["closed_by"]) == ("id-1", "gateway")
    assert found["bytes_out"] == len(answer.data)
    assert "secret" not in str(found)


def test_health_is_not_logged(watched: Callable[..., FlaskClient], written: Written) -> None:
    """Who watches asks all day."""
    client = watched()
    assert client.get("/health", buffered=True).status_code == 200
    assert client.post("/health", buffered=True).status_code == 405
    assert [each["status"] for each in written.records()] == [405]


def test_the_principal_is_told_and_no_key(
        watched: Callable[..., FlaskClient], written: Written) -> None:
    """By the name of the key; who has no good one has no name."""
    client = watched(keys=(holder("alice", models=("x",)),))
    for headers in (bearer("alice"), bearer("mallory"), {"x-api-key": key_of("alice")}):
        client.post(CHAT, json=chat(), headers=headers, buffered=True)
    found = written.records()
    assert [(each["principal"], each["status"], each["error"]) for each in found] == [
        ("alice", 403, "model_not_allowed"), (None, 401, "unauthorized"),
        ("alice", 403, "model_not_allowed")]
    assert found[0]["model"] == MODEL
    assert b"-key" not in b"".join(written)


def test_what_a_client_makes_up_does_no_harm(
        watched: Callable[..., FlaskClient], written: Written) -> None:
    """A name of many lines, or a very long one, is one short line."""
    client = watched()
    for model in ('x\n{"level":"ERROR"}\r\x00\x1b[2J\x7f\u2028\u202eé"', "y" * 5000):
        client.post(CHAT, json=chat(model=model), buffered=True)
    first, second = written.records()
    assert first["model"].startswith('x\n{"level":"ERROR"}') and second["model"] == "y" * 200
    assert all(line.strip().isascii() and line.decode().strip().isprintable() for line in written)


def started(client: FlaskClient, body: dict[str, Any]) -> tuple[Any, list[str]]:
    """The pieces of an answer that nobody has taken yet, and its status as it was told."""
    told: list[str] = []
    environ = EnvironBuilder(CHAT, method="POST", json=body).get_environ()
    pieces = client.application.wsgi_app(environ, lambda status, *_: told.append(status))
    return pieces, told


@pytest.mark.parametrize("taken", [0, 1])
def test_an_answer_that_is_not_taken_is_one_of_a_client_that_left(
        watched: Callable[..., FlaskClient], written: Written, taken: int) -> None:
    """Whether or not a piece of it was; closing it again changes nothing."""
    pieces, told = started(watched(), chat())
    assert told == ["200 OK"]
    if taken:
        next(iter(pieces))
    assert not written
    for _ in range(2):
        pieces.close()
    [found] = written.records()
    assert (found["status"], found["closed_by"], found["error"]) == (499, "client", "client_gone")
    assert (found["bytes_out"], found["first_byte_ms"]) == (0, None)


def failing(app: Flask, where: str) -> None:
    """Make the gateway itself fail there, where only a fault of its own can lie."""
    def fail(*_: object) -> Any:
        raise RuntimeError("a fault")

    def broken() -> Iterator[bytes]:
        yield b"begun"
        fail()

    if where == "before":
        app.before_request_funcs[None].append(fail)
    elif where == "after":
        app.after_request(fail)
    else:
        app.add_url_rule("/fault", "fault", lambda: Response(broken()))


@pytest.mark.parametrize(("where", "status", "raises"), [
    ("before", 500, False), ("after", 500, True), ("midway", 200, True)])
def test_a_fault_of_the_gateway_has_a_record(
        watched: Callable[..., FlaskClient], written: Written, where: str, status: int,
        raises: bool) -> None:
    """Wherever it lies: in a view, behind it, or in the midst of the answer."""
    client = watched()
    failing(client.application, where)
    client.application.config["PROPAGATE_EXCEPTIONS"] = where == "after"
    environ = EnvironBuilder("/fault").get_environ()
    try:
        pieces = client.application.wsgi_app(environ, lambda *_: None)
        try:
            list(pieces)
        finally:
            pieces.close()
        assert not raises
    except RuntimeError:
        assert raises
    [found] = written.records()
    assert (found["status"], found["closed_by"]) == (status, "gateway")
    assert where == "after" or found["error"] == "internal"
