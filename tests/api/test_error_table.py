"""Every error in the shape of the API that was called, on every route."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.http import HTTP_STATUS_CODES

from app.api.errors import document
from app.errors import GatewayError, Kind
from tests.api.conftest import MODEL, Build
from tests.fakes.strict_json import strict_json

INVALID, SERVER = "invalid_request_error", "server_error"
PERMISSION = "permission_error"
TABLE: dict[Kind, tuple[int, str, str | None]] = {
    Kind.INVALID_BODY: (400, INVALID, None),
    Kind.INVALID_FIELD: (400, INVALID, None),
    Kind.UNAUTHORIZED: (401, INVALID, "invalid_api_key"),
    Kind.MODEL_NOT_ALLOWED: (403, PERMISSION, "model_not_allowed"),
    Kind.SCOPE_MISSING: (403, PERMISSION, "scope_missing"),
    Kind.HOST_NOT_ALLOWED: (403, PERMISSION, "host_not_allowed"),
    Kind.ORIGIN_NOT_ALLOWED: (403, PERMISSION, "origin_not_allowed"),
    Kind.UNKNOWN_MODEL: (404, INVALID, "model_not_found"),
    Kind.UNKNOWN_URL: (404, INVALID, None),
    Kind.METHOD_NOT_ALLOWED: (405, INVALID, None),
    Kind.BODY_TOO_SLOW: (408, INVALID, "request_timeout"),
    Kind.BODY_TOO_LARGE: (413, INVALID, "request_too_large"),
    Kind.UNSUPPORTED_CODING: (415, INVALID, "unsupported_encoding"),
    Kind.RATE_LIMITED: (429, "rate_limit_error", "rate_limit_exceeded"),
    Kind.BUSY: (503, SERVER, "service_unavailable"),
    Kind.STOPPING: (503, SERVER, "service_unavailable"),
    Kind.CLIENT_GONE: (499, "invalid_request_error", "client_closed_request"),
    Kind.INTERNAL: (500, SERVER, "internal_error"),
    Kind.ENGINE_UNAVAILABLE: (502, SERVER, "engine_unavailable"),
    Kind.ENGINE_NOT_READY: (503, SERVER, "service_unavailable"),
    Kind.QUEUE_FULL: (429, "rate_limit_error", "rate_limit_exceeded"),
    Kind.UPSTREAM_ERROR: (502, SERVER, "upstream_error"),
    Kind.NO_MODEL_LOADED: (503, SERVER, "service_unavailable"),
    Kind.ENGINE_TIMEOUT: (504, SERVER, "engine_timeout"),
}
CHAT = "/v1/chat/completions"
FAILING = ["/v1/fail", "/api/fail", "/engines/fail"]
PROBLEM_TYPE = "application/problem+json"
PROBLEM = ["type", "title", "status", "detail", "code", "param"]
ROUTES = {
    "/": "GET", "/health": "GET", "/engines": "GET", "/openapi.json": "GET", "/v1/models": "GET",
    "/v1/models/x": "GET", CHAT: "POST",
    "/api/tags": "GET", "/api/ps": "GET", "/api/version": "GET", "/api/show": "POST",
    **dict.fromkeys((
        "/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/pull", "/api/create",
        "/api/copy", "/api/push"), "POST"),
    "/api/delete": "DELETE", "/api/user/keys/<key>": "DELETE", "/api/me": "POST",
    "/api/signout": "POST", "/api/status": "GET", "/api/experimental/model-recommendations": "GET",
    "/models": "GET",
    "/v1/completions": "POST", "/v1/inference": "POST", "/v1/inference/stream": "POST",
    **dict.fromkeys((
        "/completion", "/completions", "/chat/completions", "/responses", "/infill", "/embedding",
        "/embeddings", "/rerank", "/reranking", "/tokenize", "/detokenize", "/apply-template",
        "/audio/transcriptions"), "POST"),
}
BLOBS = "/api/blobs/<digest>"  # HEAD and POST, so no line of the table
OF_ITSELF = {"/props", "/slots", "/slots/<number>", "/lora-adapters", "/metrics"}  # GET and POST
ANY_METHOD = {BLOBS, *OF_ITSELF, "/v1/<path:rest>", "/upstream/<path:rest>"}


def type_of(status: int) -> str:
    """OpenAI's word for a status."""
    own = {403: PERMISSION, 429: "rate_limit_error"}
    return own.get(status, INVALID if status < 500 else SERVER)


def error_of(answer: Any, status: int, path: str) -> tuple[str, str | None, str | None]:
    """Message, param and code of an error, its shape checked; /api has the message only."""
    body = strict_json(answer.data)
    if path.startswith(("/engines", "/metrics", "/openapi.json")):
        assert (answer.status_code, answer.content_type) == (status, PROBLEM_TYPE)
        assert list(body) == PROBLEM and body["status"] == status
        return body["detail"], body["param"], body["code"]
    assert (answer.status_code, answer.content_type) == (status, "application/json")
    assert list(body) == ["error"]
    if path.startswith("/api"):
        assert isinstance(body["error"], str) and body["error"]
        return body["error"], None, None
    assert list(body["error"]) == ["message", "type", "param", "code"]
    assert body["error"]["type"] == type_of(status)
    return body["error"]["message"], body["error"]["param"], body["error"]["code"]


def test_every_kind_is_in_the_table() -> None:
    """A new kind of error needs a line here and there."""
    assert set(TABLE) == set(Kind)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("path", [
    CHAT, "/v1/models", "/", "/health", "/nope", "/apis", "/v1/api/", "/enginesx", "/v1/engines",
    "/upstream/m/metrics", "/openapi.jsonx", "*", ""])
def test_every_kind_has_openais_shape(kind: Kind, path: str) -> None:
    """Four fields, all of them always there."""
    status, kind_text, code = TABLE[kind]
    for param in (None, "messages[0].role"):
        found, body = document(GatewayError(kind, "grüße \"x\"", param=param, model="x"), path)
        assert found == status
        assert list(strict_json(body)["error"].items()) == [
            ("message", "grüße \"x\""), ("type", kind_text), ("param", param), ("code", code)]


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("path", ["/api", "/api/", "/api/show", "/api/nope/x"])
def test_every_kind_has_ollamas_shape(kind: Kind, path: str) -> None:
    """One field, a text; an unknown model is told in Ollama's words."""
    status, body = document(GatewayError(kind, "it failed", param="p", model="m"), path)
    text = "model 'm' not found" if kind is Kind.UNKNOWN_MODEL else "it failed"
    assert (status, strict_json(body)) == (TABLE[kind][0], {"error": text})


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("path", [
    "/engines", "/engines/", "/engines/x/stop", "/metrics", "/metrics/x", "/openapi.json"])
def test_every_kind_is_a_problem(kind: Kind, path: str) -> None:
    """RFC 9457 on the routes that are the gateway's own; the title is that of the status."""
    status, _, code = TABLE[kind]
    found, body = document(GatewayError(kind, "it failed", param="p"), path)
    problem = strict_json(body)
    title = HTTP_STATUS_CODES.get(status, "Client Closed Request")
    assert (found, problem) == (status, {
        "type": "about:blank", "title": title, "status": status, "detail": "it failed",
        "code": code, "param": "p"})


def failing(build: Build, error: BaseException) -> FlaskClient:
    """A client of an application with routes that raise this error."""
    client = build()

    def fail() -> str:
        raise error

    for path in FAILING:
        client.application.add_url_rule(path, path, fail, methods=["GET", "POST"])
    return client


@pytest.mark.parametrize("path", FAILING)
@pytest.mark.parametrize("kind", Kind)
def test_every_kind_is_rendered(build: Build, kind: Kind, path: str) -> None:
    """Wherever it is raised; 429 and 503 say when to come back."""
    client = failing(build, GatewayError(kind, "it failed", param="p", model="m"))
    answer = client.get(path)
    message, param, code = error_of(answer, TABLE[kind][0], path)
    if path != "/api/fail":
        assert (message, param, code) == ("it failed", "p", TABLE[kind][2])
    assert ("Retry-After" in answer.headers) == (answer.status_code in (429, 503))
    assert answer.headers["X-Request-Id"]


@pytest.mark.parametrize("path", FAILING)
@pytest.mark.parametrize("error", [
    RuntimeError("secret detail"), KeyError("secret detail"), OSError(5, "secret detail"),
    RecursionError("secret detail"), UnicodeDecodeError("utf-8", b"x", 0, 1, "secret detail")])
def test_what_is_unforeseen_is_a_500_that_tells_nothing(
        build: Build, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch,
        error: Exception, path: str) -> None:
    """The stack trace stands in the log, under the id that the client gets."""
    monkeypatch.setattr(logging.getLogger("app"), "propagate", True)
    answer = failing(build, error).post(path, headers={"X-Request-Id": "id-7"})
    message, param, code = error_of(answer, 500, path)
    assert message == "the gateway failed; its log says more about request id-7"
    assert (param, code) == (None, None if path == "/api/fail" else "internal_error")
    assert b"secret" not in answer.data and b"Traceback" not in answer.data
    [record] = [r for r in caplog.records if r.name == "app.api.errors"]
    assert record.getMessage() == f"request id-7: POST {path} failed"
    assert record.exc_info and record.exc_info[1] is error


def test_all_routes_are_walked(client: FlaskClient) -> None:
    """A new route needs a line here."""
    rules = client.application.url_map.iter_rules()
    found = {rule.rule.replace("<path:name>", "x") for rule in rules}
    assert found == set(ROUTES) | ANY_METHOD


@pytest.mark.parametrize(("path", "wrong"), [
    (path, wrong) for path, method in ROUTES.items()
    for wrong in ("GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW") if wrong != method])
def test_a_wrong_method_is_a_405(client: FlaskClient, path: str, wrong: str) -> None:
    """The answer says which are allowed."""
    answer = client.open(path, method=wrong)
    message, *rest = error_of(answer, 405, path)
    assert message == f"the method {wrong} is not allowed for {path}"
    assert rest == [None, None]
    allowed = {ROUTES[path], "OPTIONS"} | ({"HEAD"} if ROUTES[path] == "GET" else set())
    assert set(answer.headers["Allow"].split(", ")) == allowed


@pytest.mark.parametrize("path", [
    "/nope", "/v1", "/v1/", "/v1/nope", "/v1/models/", "/v1/chat/completions/",
    "/api", "/api/", "/api/nope", "/api/tags//", "/api//tags", "/V1/models",
    "/favicon.ico", "/v1/%ff", "/<b>", "/engines/", "/engines/x", "/metrics/", "/openapi.json/",
    "/upstream", "/upstream/", "/upstream/m"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_url_is_a_404(client: FlaskClient, path: str, method: str) -> None:
    """In JSON, without a redirect to what it resembles."""
    if method == "POST" and path.startswith("/v1/") and path != "/v1/":
        pytest.skip("what may be posted below /v1 only an engine knows")
    answer = client.open(f"http://localhost{path}", method=method)
    message, *rest = error_of(answer, 404, path)
    assert message.startswith("there is no /") and message.endswith(" here")
    assert rest == [None, None]


@pytest.mark.parametrize("path", [CHAT, "/api/show"])
@pytest.mark.parametrize(("size", "too_large"), [(99_999, False), (100_000, False),
                                                 (100_001, True), (500_000, True)])
def test_a_body_over_the_limit_is_a_413(
        client: FlaskClient, path: str, size: int, too_large: bool) -> None:
    """One byte more than configured is too much."""
    body = b'{"x":"' + b"a" * (size - 8) + b'"}'
    answer = client.post(path, data=body)
    if too_large:
        message, _, code = error_of(answer, 413, path)
        assert message == "the request body is larger than 100000 bytes"
        assert code == (None if path == "/api/show" else "request_too_large")
    else:
        error_of(answer, 400, path)


@pytest.mark.parametrize(("model", "content", "status", "message", "code"), [
    ("nope", "hi", 404, "the model 'nope' does not exist", "model_not_found"),
    ("down", "hi", 502, "no engine is listening at http://127.0.0.1:", "engine_unavailable"),
    (MODEL, "status:500", 502, "the engine answered 500: fake engine returned 500",
     "upstream_error"),
    (MODEL, "status:302", 502, "the engine answered 302, which the gateway does not follow",
     "upstream_error"),
    (MODEL, "sleep:3000", 504, "the engine did not answer within 200 ms", "engine_timeout"),
])
def test_what_goes_wrong_at_an_engine_is_told(
        build: Build, model: str, content: str, status: int, message: str, code: str) -> None:
    """Each fault has its own code, by which a client decides what to do."""
    body = {"model": model, "messages": [{"role": "user", "content": content}]}
    answer = build(read_timeout=0.2).post(CHAT, data=json.dumps(body))
    found, param, found_code = error_of(answer, status, CHAT)
    assert found.startswith(message)
    assert (param, found_code) == ("model" if status == 404 else None, code)


@pytest.mark.parametrize("status", [400, 429, 503])
def test_an_engines_own_error_passes(client: FlaskClient, status: int) -> None:
    """In its own shape, byte for byte."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": f"status:{status}"}]}
    answer = client.post(CHAT, data=json.dumps(body))
    assert (answer.status_code, answer.content_type) == (
        status, "application/json; charset=utf-8")
    assert answer.data == (b'{"error":{"code":%d,"message":"fake engine returned %d",'
                           b'"type":"server_error"}}' % (status, status))
