"""Every error is JSON in the shape of the API that was called, whatever the path or method."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.engine_steps import close, reply, silence
from tests.fakes.raw_client import RawClient, fetch
from tests.fakes.raw_engine import RawEngine, Script
from tests.server.calls import CHAT, HELLO, SHOW, get, ollama_error, openai_error, post
from tests.server.gateway_process import GatewayProcess

USER = [{"role": "user", "content": "hi"}]
INVALID, SERVER = "invalid_request_error", "server_error"


@pytest.mark.parametrize(("body", "error"), [
    (b"{not json", ("the request body is not valid JSON", INVALID, None, None)),
    ({"messages": USER}, ("'model' must not be blank", INVALID, "model", None)),
    ({"model": None, "messages": USER}, ("'model' must not be blank", INVALID, "model", None)),
    ({"model": " ", "messages": USER}, ("'model' must not be blank", INVALID, "model", None)),
    ({"model": [], "messages": USER}, ("'model' has the wrong JSON type", INVALID, "model", None)),
    ({"model": "m"}, ("'messages' must not be empty", INVALID, "messages", None)),
    ({"model": "m", "messages": {}}, (
        "'messages' has the wrong JSON type", INVALID, "messages", None)),
    ({"model": "m", "messages": [{"content": "x"}]}, (
        "'messages[0].role' must not be blank", INVALID, "messages[0].role", None)),
    ({"model": "m", "messages": USER, "temperature": -0.1}, (
        "'temperature' must be greater than or equal to 0.0", INVALID, "temperature", None)),
    ({"model": "m", "messages": USER, "temperature": "hot"}, (
        "'temperature' has the wrong JSON type", INVALID, "temperature", None)),
    ({"model": "m", "messages": USER, "max_tokens": -1}, (
        "'max_tokens' must be greater than 0", INVALID, "max_tokens", None)),
    ({"model": "m", "messages": USER, "stream": "yes"}, (
        "'stream' has the wrong JSON type", INVALID, "stream", None)),
    ({"model": "m", "messages": USER, "max_tokens": 0, "temperature": 3}, (
        "'max_tokens' must be greater than 0", INVALID, "max_tokens", None)),
    ({"model": 5.5, "messages": "hi", "temperature": 3, "max_tokens": 0}, (
        "'messages' has the wrong JSON type", INVALID, "messages", None)),
    ({"model": "nope", "messages": []}, (
        "'messages' must not be empty", INVALID, "messages", None)),
    ({"model": "nope", "messages": USER}, (
        "the model 'nope' does not exist", INVALID, "model", "model_not_found")),
    ({"model": "gone", "messages": USER}, (
        "no engine is listening at http://127.0.0.1:1", SERVER, None, "engine_unavailable")),
])
def test_a_chat_that_cannot_be_is_told_why(
        gateway: GatewayProcess, engine: RawEngine, body: Any, error: tuple[Any, ...]) -> None:
    """Message, type, param and code of each fault of the request or the route."""
    answer = post(gateway.url, CHAT, body)
    assert tuple(openai_error(answer).values()) == error
    assert answer.status == {"model_not_found": 404, "engine_unavailable": 502}.get(error[3], 400)
    assert engine.connections == []


@pytest.mark.parametrize(("script", "status", "error"), [
    (silence, 504, ("the engine did not answer within 1000 ms", SERVER, None, "engine_timeout")),
    (reply(500, b"sad"), 502, ("the engine answered 500: sad", SERVER, None, "upstream_error")),
    (close, 502, (None, SERVER, None, "upstream_error")),
    (reply(307, b"", [("Location", "/")]), 502, (None, SERVER, None, "upstream_error")),
], ids=["silent", "sad", "closed", "redirect"])
def test_an_engines_fault_is_told(gateway: GatewayProcess, engine: RawEngine, script: Script,
                                  status: int, error: tuple[Any, ...]) -> None:
    """Message, type, param and code of each fault of an engine."""
    engine.answer_with(script)
    answer = post(gateway.url, CHAT, HELLO)
    told = openai_error(answer)
    assert answer.status == status
    assert (error[0] or told["message"], *list(told.values())[1:]) == (told["message"], *error[1:])


@pytest.mark.parametrize(("body", "status"), [
    (b"{not json", 400), ({"model": "nope"}, 404), ({}, 400), ({"model": 5}, 400),
    ({"model": ["m"]}, 400), ({"name": {}}, 400)])
def test_show_tells_its_faults_in_one_text(
        gateway: GatewayProcess, body: Any, status: int) -> None:
    """Ollama's shape: `error` is a text."""
    answer = post(gateway.url, SHOW, body)
    assert answer.status == status and ollama_error(answer)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("path", [
    "/v1/nope", "/v1/nope/deeper", "/v1/models/", "/v1/chat", "/v1/chat/completions/",
    "/v1/%ff", "/v1/nope?x=/api/", "/v1", "/v1/"])
def test_an_unknown_url_of_v1_is_a_404(gateway: GatewayProcess, method: str, path: str) -> None:
    """No redirect and no page: the OpenAI envelope."""
    answer = fetch(gateway.url, method, path)
    assert answer.status in ((404, 405) if path == "/v1/models/" else (404,))
    error = openai_error(answer)
    assert (error["type"], error["code"]) == (INVALID, None) or path == "/v1/models/"


def test_a_post_of_v1_that_names_no_model_is_a_400(gateway: GatewayProcess) -> None:
    """Whether an engine knows the path, only the engine knows; which engine, the model says."""
    error = openai_error(post(gateway.url, "/v1/nope", {"input": "hi"}))
    assert (error["type"], error["param"]) == (INVALID, "model")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("path", [
    "/api/nope", "/api/nope/deeper", "/api/show//", "/api/tags//", "/api//tags", "/api/%ff",
    "/api/nope?x=/v1/", "/api", "/api/"])
def test_an_unknown_url_of_api_is_a_404(gateway: GatewayProcess, method: str, path: str) -> None:
    """Ollama's shape."""
    answer = fetch(gateway.url, method, path, b"{}" if method == "POST" else None)
    assert answer.status == 404 and ollama_error(answer)


@pytest.mark.parametrize("path", [
    "/nope", "/favicon.ico", "/static/x", "/v1x", "/apix", "/v2/models", "/health/", "/%ff",
    "/.env", "/console", "/v1%2Fmodels/x%2F..", "/etc/passwd"])
def test_an_unknown_url_elsewhere_is_a_404(gateway: GatewayProcess, path: str) -> None:
    """JSON there as well."""
    answer = get(gateway.url, path)
    assert answer.status == 404
    assert answer.header("Content-Type") in ("application/json", "application/problem+json")
    assert answer.json()


WRONG_METHODS = [
    ("GET", CHAT, {"POST"}), ("PUT", CHAT, {"POST"}), ("DELETE", CHAT, {"POST"}),
    ("PATCH", CHAT, {"POST"}), ("BREW", CHAT, {"POST"}), ("POST", "/v1/models", {"GET", "HEAD"}),
    ("DELETE", "/v1/models", {"GET", "HEAD"}), ("POST", "/v1/models/m", {"GET", "HEAD"}),
    ("PUT", "/v1/models/a/b:c", {"GET", "HEAD"}), ("GET", SHOW, {"POST"}),
    ("DELETE", SHOW, {"POST"}), ("POST", "/api/tags", {"GET", "HEAD"}),
    ("POST", "/api/ps", {"GET", "HEAD"}), ("POST", "/api/version", {"GET", "HEAD"}),
    ("POST", "/health", {"GET", "HEAD"}), ("POST", "/", {"GET", "HEAD"}),
]


@pytest.mark.parametrize(("method", "path", "allowed"), WRONG_METHODS,
                         ids=[f"{method} {path}" for method, path, _ in WRONG_METHODS])
def test_a_wrong_method_is_a_405(
        gateway: GatewayProcess, method: str, path: str, allowed: set[str]) -> None:
    """`Allow` names the right ones, and the body has the shape of the API."""
    answer = fetch(gateway.url, method, path, b"{}" if method == "POST" else None)
    assert answer.status == 405
    assert set((answer.header("Allow") or "").split(", ")) - {"OPTIONS"} == allowed
    if path.startswith("/v1"):
        assert openai_error(answer)["type"] == INVALID
    elif path.startswith("/api"):
        assert ollama_error(answer)
    else:
        assert answer.json()


HEADS = [("/", 200), ("/health", 200), ("/v1/models", 200), ("/v1/models/m", 200),
         ("/api/tags", 200), ("/api/ps", 200), ("/api/version", 200), ("/v1/models/nope", 404),
         ("/v1/nope", 404), ("/api/nope", 404), ("/nope", 404), (CHAT, 405), (SHOW, 405)]


@pytest.mark.parametrize(("path", "status"), HEADS, ids=[path for path, _ in HEADS])
def test_head_is_get_without_a_body(gateway: GatewayProcess, path: str, status: int) -> None:
    """Status and type are those of GET, no byte follows, and the connection goes on."""
    with RawClient(gateway.url) as client:
        first = client.request("HEAD", path).whole()
        second = client.request("GET", path).whole()
    assert first.status == second.status == status
    assert first.header("Content-Type") == second.header("Content-Type")
    if status != 405:  # whose message names the method
        assert first.header("Content-Length") in (None, str(len(second.body)))
    assert second.body


def test_the_plain_routes(gateway: GatewayProcess) -> None:
    """What Ollama's clients look at first."""
    root = get(gateway.url, "/")
    assert (root.status, root.body) == (200, b"Ollama is running")
    assert (root.header("Content-Type") or "").startswith("text/plain")
    version = get(gateway.url, "/api/version").json()["version"]
    assert all(part.isdigit() for part in version.split("."))
    assert get(gateway.url, "/health").status == 200


MALFORMED = {
    "words": b"hello\r\n\r\n", "bytes": bytes(range(128, 256)) + b"\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "no_version": b"GET /v1/models\r\n\r\n", "bad_version": b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
    "odd_version": b"GET / HTTX/1.1\r\nHost: a\r\n\r\n", "two_spaces": b"GET  /v1 HTTP/1.1\r\n\r\n",
    "no_colon": b"GET /v1/models HTTP/1.1\r\nHost: a\r\nFoo\r\n\r\n",
    "space_in_name": b"GET /v1/models HTTP/1.1\r\nHost: a\r\nFoo Bar: x\r\n\r\n",
    "space_after_name": b"GET /v1/models HTTP/1.1\r\nHost: a\r\nFoo : x\r\n\r\n",
    "empty_name": b"GET /v1/models HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
    "nul": b"GET /v1/models HTTP/1.1\r\nHost: a\r\nFoo: a\0b\r\n\r\n",
    "folded": b"GET /v1/models HTTP/1.1\r\nHost: a\r\nFoo: a\r\n b\r\n\r\n",
    "long_line": b"GET /v1/models/" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    "long_field": b"GET /v1/models HTTP/1.1\r\nHost: a\r\nFoo: " + b"a" * 500_000 + b"\r\n\r\n",
    "many_fields": b"GET /v1/models HTTP/1.1\r\nHost: a\r\n" + b"Foo: a\r\n" * 5000 + b"\r\n",
    "method": b"G@T /v1/models HTTP/1.1\r\nHost: a\r\n\r\n",
    "odd_length": b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_http_is_refused_as_json(gateway: GatewayProcess, data: bytes) -> None:
    """A 4xx or 5xx that says the protocol was broken, no page, and the same worker goes on."""
    workers = gateway.workers()
    with RawClient(gateway.url) as client:
        client.send(data)
        answer = client.answer().whole()
    assert 400 <= answer.status < 500 or answer.status in (501, 505)
    assert answer.header("Content-Type") == "application/json" and answer.json()["error"]
    assert get(gateway.url, "/health").status == 200 and gateway.workers() == workers


@pytest.mark.parametrize(("path", "content_type", "message"), [
    ("/v1/models", "application/json", ["error", "message"]),
    ("/v1/messages", "application/json", ["error", "message"]),
    ("/api/chat", "application/json", ["error"]), ("/", "application/json", ["error", "message"]),
    ("/engines", "application/problem+json", ["detail"]),
    ("/metrics", "application/problem+json", ["detail"])])
def test_what_is_no_http_is_refused_in_the_shape_of_its_path(
        gateway: GatewayProcess, path: str, content_type: str, message: list[str]) -> None:
    """Where the head could be read far enough to know the path."""
    with RawClient(gateway.url) as client:
        client.send(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n".encode())
        answer = client.answer().whole()
    assert (answer.status, answer.header("Content-Type")) == (400, content_type)
    found = answer.json()
    assert (found.get("type") == "error") == (path == "/v1/messages")
    for key in message:
        found = found[key]
    assert found == "the request is not valid HTTP: invalid header"


ODD = {
    "absolute_url": b"GET http://x/v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
    "no_host": b"GET /v1/models HTTP/1.1\r\n\r\n", "star": b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "raw_byte": b"GET /v1/models/\xff HTTP/1.1\r\nHost: a\r\n\r\n",
    "bad_percent": b"GET /v1/models/%zz HTTP/1.1\r\nHost: a\r\n\r\n",
    "nul_in_path": b"GET /v1/models/%00 HTTP/1.1\r\nHost: a\r\n\r\n",
    "odd_host": b"GET /v1/models HTTP/1.1\r\nHost: a b:x/\r\n\r\n",
    "connect": b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    "http_1_2": b"GET /v1/models HTTP/1.2\r\nHost: a\r\n\r\n",
    "http_1_0": b"GET /v1/models HTTP/1.0\r\n\r\n",
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
def test_odd_requests_get_json_and_no_500(gateway: GatewayProcess, data: bytes) -> None:
    """Legal or nearly so: any proper answer will do, but none is a page or a crash."""
    with RawClient(gateway.url) as client:
        client.send(data)
        client.end()
        answer = client.answer().whole()
    assert answer.status < 500 and not answer.cut
    assert b"<" not in answer.body
    if answer.body and answer.status != 200:
        assert json.loads(answer.body)
