"""Who is let in: every API answers a missing or wrong key in its own shape, and no engine starts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from flask.testing import FlaskClient

from app.settings import EngineSettings
from tests.api.conftest import Build, SetClock
from tests.api.holders import bearer, holder, key_of
from tests.fakes.engine_steps import reply
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.fakes.strict_json import strict_json

NOON = datetime(2026, 10, 3, 12, tzinfo=timezone.utc)
USER = [{"role": "user", "content": "hi"}]
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
OWN = ("/engines", "/metrics", "/openapi.json")
BODY = json.dumps({"model": "m", "messages": USER, "max_tokens": 5, "stream": False}).encode()
CALLS = [
    ("POST", CHAT, BODY), ("POST", "/v1/completions", BODY), ("POST", "/v1/embeddings", BODY),
    ("POST", MESSAGES, BODY), ("POST", "/v1/messages/count_tokens", BODY),
    ("GET", "/v1/models", b""), ("GET", "/v1/models/m", b""), ("GET", "/models", b""),
    ("POST", "/completion", BODY),
    ("POST", "/infill", BODY), ("GET", "/props?model=m", b""), ("GET", "/api/tags", b""),
    ("GET", "/api/ps", b""), ("POST", "/api/show", BODY), ("POST", "/api/chat", BODY),
    ("POST", "/api/generate", BODY), ("POST", "/api/embed", BODY), ("POST", "/api/pull", BODY),
    ("POST", "/upstream/m/v1/chat/completions", BODY), ("GET", "/metrics?model=m", b""),
    *(("GET", path, b"") for path in OWN), ("POST", "/engines/x", b""), ("GET", "/nope", b""),
    ("POST", "/v1/nope", BODY), ("GET", "/api/nope", b""),
    ("DELETE", CHAT, b""), ("OPTIONS", CHAT, b""), ("POST", CHAT, b"{"), ("HEAD", "/api/tags", b""),
]


@pytest.fixture
def engine() -> Iterator[RawEngine]:
    """The engine of the model m."""
    with RawEngine(reply()) as engine:
        yield engine


@pytest.fixture
def guarded(build: Build, engine: RawEngine, registry_home: RegistryHome) -> FlaskClient:
    """A gateway with three keys: for calls, for everything, and one whose time is over."""
    registry_home.add("m")
    return build(engines=(EngineSettings(engine.url, ("m",)),), keys=(
        holder("alice"), holder("root", scopes=("infer", "admin", "metrics")),
        holder("gone", expires=NOON - timedelta(seconds=1)), holder("ü")))


def require_refusal(answer: Any, path: str) -> None:
    """Check the 401 for its shape, which is that of the API that was called."""
    assert answer.status_code == 401, answer.data
    own = path.startswith(OWN)
    assert answer.content_type == ("application/problem+json" if own else "application/json")
    assert answer.headers["WWW-Authenticate"] == "Bearer" and answer.headers["X-Request-Id"]
    if not answer.data:  # HEAD
        return
    body = strict_json(answer.data)
    if path.startswith("/api"):
        assert list(body) == ["error"] and isinstance(body["error"], str)
    elif path.startswith(MESSAGES):
        assert body["type"] == "error" and set(body["error"]) == {"type", "message"}
        assert body["error"]["type"] == "authentication_error"
    elif own:
        assert (body["status"], body["code"]) == (401, "invalid_api_key")
    else:
        assert list(body["error"]) == ["message", "type", "param", "code"]
        assert (body["error"]["type"], body["error"]["param"], body["error"]["code"]) == (
            "invalid_request_error", None, "invalid_api_key")


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_no_key_is_a_401_everywhere(guarded: FlaskClient, engine: RawEngine,
                                    method: str, path: str, body: bytes) -> None:
    """Whether or not the address, the method or the body are any good; no engine hears of it."""
    require_refusal(guarded.open(path, method=method, data=body), path)
    assert engine.connections == []


WRONG = [
    {}, {"Authorization": ""}, {"Authorization": "Bearer"}, {"Authorization": "Bearer "},
    {"Authorization": "Basic dTpw"}, {"Authorization": "Bearer nobody"},
    {"Authorization": f"Basic {key_of('alice')}"}, {"Authorization": key_of("alice")},
    {"Authorization": f"Bearer {key_of('alice')}x"}, {"Authorization": "Bearer ALICE-KEY"},
    {"Authorization": "Bearer caf\xe9"}, {"Authorization": "Bearer caf\xc3\xa9"},
    {"Authorization": "Bearer \xe2\x80\x9calice-key\xe2\x80\x9d"},
    {"Authorization": f"Bearer {'x' * 100_000}"}, {"x-api-key": "nobody"}, {"api-key": "nobody"},
    {"Authorization": "Bearer alice-key,alice-key"}, {**bearer("alice"), "x-api-key": "nobody"},
    {**bearer("alice"), "api-key": key_of("root")}, {"Cookie": f"api-key={key_of('alice')}"},
    {"Proxy-Authorization": f"Bearer {key_of('alice')}"}, {"key": key_of("alice")}, bearer("gone"),
]


@pytest.mark.parametrize("path", [CHAT, MESSAGES, "/api/chat", "/completion", "/upstream/m/x"])
def test_a_wrong_key_is_a_401(guarded: FlaskClient, engine: RawEngine, path: str) -> None:
    """However it is written, and several at once too; the answer does not repeat it."""
    for headers in WRONG:
        answer = guarded.post(path, data=BODY, headers=headers)
        require_refusal(answer, path)
        told = answer.data.replace(b"Bearer KEY", b"")
        for value in filter(None, headers.values()):
            assert value.encode("latin-1").split()[-1] not in told
    assert engine.connections == []


RIGHT = [
    bearer("alice"), {"Authorization": f"bearer  {key_of('alice')}"}, {"x-api-key": "alice-key"},
    {"api-key": "alice-key"}, {**bearer("alice"), "x-api-key": "alice-key"},
    {"Authorization": "Basic dTpw", "x-api-key": "alice-key"},
    {"Authorization": "Bearer \xc3\xbc-key"},  # UTF-8, as WSGI has it
]


@pytest.mark.parametrize(("method", "path"), [
    ("POST", CHAT), ("POST", MESSAGES), ("POST", "/api/chat"), ("GET", "/v1/models"),
    ("GET", "/api/tags")])
def test_a_right_key_is_let_in(
        guarded: FlaskClient, engine: RawEngine, method: str, path: str) -> None:
    """In any of three headers; the engine gets nothing of it."""
    for headers in RIGHT:
        answer = guarded.open(path, method=method, data=BODY, headers=headers, buffered=True)
        assert answer.status_code == 200, (headers, answer.data)
    for request in [*engine.requests, *engine.probes]:
        assert request.all("Authorization") == request.all("x-api-key") == []
        assert "alice-key" not in str(request.headers) + request.line


@pytest.mark.parametrize("query", ["api_key", "api-key", "key", "access_token", "Authorization"])
def test_a_key_in_the_url_is_none(guarded: FlaskClient, query: str) -> None:
    """URLs are logged on the way, and kept."""
    require_refusal(guarded.get(f"/v1/models?{query}={key_of('alice')}"), "/v1/models")


@pytest.mark.parametrize("headers", [{}, bearer("alice"), bearer("nobody"), bearer("gone")])
@pytest.mark.parametrize("path", ["/", "/health", "/api/version"])
def test_probes_need_no_key(guarded: FlaskClient, path: str, headers: dict[str, str]) -> None:
    """Clients and monitors look whether somebody is there; they learn nothing else."""
    assert guarded.get(path, headers=headers).status_code == 200
    assert guarded.head(path, headers=headers).status_code == 200


ADMIN = [("POST", "/upstream/m/x"), ("GET", "/engines"), ("POST", "/api/pull"),
         ("POST", "/api/create"), ("DELETE", "/api/delete"), ("POST", "/api/copy"),
         ("POST", "/api/push"), ("POST", "/api/blobs/sha256:1"), ("POST", "/slots/0?model=m"),
         ("POST", "/props?model=m"), ("POST", "/lora-adapters?model=m")]


@pytest.mark.parametrize(("method", "path", "scope"), [
    *[(*each, "admin") for each in ADMIN], ("GET", "/metrics?model=m", "metrics")])
def test_some_addresses_take_a_scope(guarded: FlaskClient, engine: RawEngine, method: str,
                                     path: str, scope: str) -> None:
    """A key without it gets a 403 that names it; one with it gets on."""
    refused = guarded.open(path, method=method, data=BODY, headers=bearer("alice"))
    assert refused.status_code == 403 and f"the scope '{scope}'".encode() in refused.data
    if not path.startswith("/api"):
        found = strict_json(refused.data)
        error = found if path.startswith(OWN) else found["error"]
        assert error["code"] == "scope_missing"
        assert error["type"] == ("about:blank" if error is found else "permission_error")
    assert engine.connections == []
    assert guarded.open(path, method=method, data=BODY, headers=bearer("root")).status_code in (
        200, 400, 404, 501)


UNLOADING = [("/api/chat", {}), ("/api/generate", {}), ("/api/generate", {"prompt": ""}),
             ("/api/chat", {"messages": []}), ("/api/embed", {"input": []}), ("/api/embed", {}),
             ("/api/embeddings", {"prompt": ""})]


@pytest.mark.parametrize(("path", "fields"), UNLOADING)
@pytest.mark.parametrize("keep", [0, "0", "0s", 0.0])
def test_to_unload_a_model_takes_admin(guarded: FlaskClient, path: str, fields: dict[str, Any],
                                       keep: Any) -> None:
    """It is in use by others; to load it, or to use it last, does not."""
    body = {"model": "m", "stream": False, "keep_alive": keep, **fields}
    refused = guarded.post(path, json=body, headers=bearer("alice"))
    assert refused.status_code == 403 and b"admin" in refused.data
    assert guarded.post(path, json=body, headers=bearer("root")).status_code == 200


def test_a_key_ends_when_its_time_has_come(build: Build, clock: SetClock) -> None:
    """While the gateway runs, to the moment."""
    client = build(keys=(holder("alice", expires=clock.now + timedelta(minutes=5)),))
    clock.move(seconds=299)
    assert client.get("/v1/models", headers=bearer("alice")).status_code == 200
    clock.move(seconds=1)
    require_refusal(client.get("/v1/models", headers=bearer("alice")), "/v1/models")


def test_without_keys_everything_is_allowed(build: Build, engine: RawEngine) -> None:
    """Whatever key is sent."""
    client = build(engines=(EngineSettings(engine.url, ("m",)),))
    for headers in ({}, bearer("nobody"), {"x-api-key": "a", "api-key": "b"}):
        for path in (CHAT, "/upstream/m/x", "/metrics?model=m"):
            answer = client.post(path, data=BODY, headers=headers, buffered=True)
            assert answer.status_code == 200
        body = {"model": "m", "keep_alive": 0}
        assert client.post("/api/generate", json=body, headers=headers).status_code == 200
