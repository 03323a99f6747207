"""What the gateway answers fits what its OpenAPI document says of it, errors and lines included."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator

from app.launcher.openapi import document
from app.settings import EngineSettings
from tests.api.conftest import MODEL, Build
from tests.fakes.engine_steps import JSON_TYPE, reply
from tests.fakes.raw_engine import Exchange, RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.fakes.strict_json import strict_json
from tests.server.gateway_process import ROOT

DOCUMENT: dict[str, Any] = document()
VECTORS = b'{"data":[{"index":0,"embedding":[0.6,0.8]}],"usage":{"prompt_tokens":2}}'
SAID = {"messages": [{"role": "user", "content": "hi"}], "prompt": "hi", "input": "hi"}


def fits(value: Any, schema: dict[str, Any]) -> None:
    """Raise jsonschema's error where the value does not fit the schema of the document."""
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(value)


def schema_of(path: str, method: str, status: int, content: str) -> dict[str, Any]:
    """What an answer of the gateway's own has to fit; an engine's own error may be anything."""
    answer = DOCUMENT["paths"][path][method.lower()]["responses"][str(status)]
    name = answer.get("$ref", "").rpartition("/")[2]
    answer = DOCUMENT["components"]["responses"][name] if name else answer
    found: dict[str, Any] = answer["content"][content]["schema"]
    own: dict[str, Any] = found["anyOf"][0] if found.get("anyOf", [0])[-1] == {} else found
    return own


def answering(exchange: Exchange) -> None:
    """Chats as an engine of OpenAI's kind, and vectors."""
    path = exchange.request.line.split(" ")[1]
    reply(200, VECTORS, JSON_TYPE)(exchange) if path == "/v1/embeddings" else reply()(exchange)


@pytest.fixture(scope="module")
def engine() -> Iterator[RawEngine]:
    """The engine of the model m."""
    with RawEngine(answering) as engine:
        yield engine


@pytest.fixture
def client(build: Build, engine: RawEngine, registry_home: RegistryHome) -> FlaskClient:
    """A client of a gateway with an attached and a managed engine, and models of each."""
    registry_home.add(MODEL)
    registry_home.add("m")
    managed = EngineSettings("", ("*",), command=("true", "{port}"))
    return build(engines=(EngineSettings(engine.url, ("m",), kind="openai"), managed))


ANSWERS = [
    ("GET", "/health", None), ("GET", "/engines", None), ("GET", "/v1/models", None),
    ("GET", "/api/tags", None), ("GET", "/api/version", None), ("GET", "/api/status", None),
    ("GET", "/api/ps", None), ("GET", "/api/experimental/model-recommendations", None),
    ("POST", "/api/show", {"model": MODEL}), ("POST", "/v1/chat/completions", SAID),
    ("POST", "/v1/inference", {**SAID, "modelId": "m"}),
    ("POST", "/api/chat", {**SAID, "stream": False}), ("POST", "/api/embed", SAID),
    ("POST", "/api/generate", {**SAID, "stream": False}), ("POST", "/api/embeddings", SAID),
    ("POST", "/api/pull", {"stream": False}),
    ("POST", "/api/create", {"model": "made", "from": "m", "system": "Be brief.", "stream": False}),
]


@pytest.mark.parametrize(("method", "path", "body"), ANSWERS)
def test_a_good_answer_fits(
        client: FlaskClient, method: str, path: str, body: dict[str, Any] | None) -> None:
    """Every field is described, and every field that is needed is there."""
    client.post("/v1/chat/completions", json={"model": "m", **SAID}, buffered=True)
    data = None if body is None else json.dumps({"model": "m", **body})
    answer = client.open(path, method=method, data=data, buffered=True)
    assert answer.status_code == 200, answer.data
    fits(strict_json(answer.data), schema_of(path, method, 200, "application/json"))


@pytest.mark.parametrize(("path", "body"), [
    ("/api/chat", SAID), ("/api/generate", SAID), ("/api/pull", {}),
    ("/api/create", {"from": "m"})])
def test_every_line_fits(client: FlaskClient, path: str, body: dict[str, Any]) -> None:
    """As the whole answer does."""
    answer = client.post(path, json={"model": "m", **body}, buffered=True)
    assert answer.content_type == "application/x-ndjson"
    for line in answer.data.splitlines():
        fits(strict_json(line), schema_of(path, "POST", 200, "application/json"))


@pytest.mark.parametrize(("method", "path", "body", "status"), [
    ("POST", "/v1/chat/completions", b"{", 400), ("POST", "/api/chat", b"{", 400),
    ("POST", "/v1/messages", b"{", 400), ("POST", "/completion", b"{", 400),
    ("POST", "/v1/messages", b'{"model":"nope"}', 404), ("POST", "/api/me", b"{}", 401),
    ("POST", "/v1/inference", b'{"modelId":"m","messages":[]}', 400),
    ("POST", "/api/push", b"{}", 501), ("DELETE", "/api/delete", b'{"model":"nope"}', 404),
    ("POST", "/v1/embeddings", b'{"model":"nope"}', 404),
    ("POST", "/api/show", b'{"model":"nope"}', 404)])
def test_an_error_fits(
        client: FlaskClient, method: str, path: str, body: bytes, status: int) -> None:
    """In the shape of its API."""
    answer = client.open(path, method=method, data=body, buffered=True)
    assert answer.status_code == status
    fits(strict_json(answer.data), schema_of(path, method, status, "application/json"))


@pytest.mark.parametrize("path", ["/engines", "/metrics", "/openapi.json"])
def test_a_problem_fits(client: FlaskClient, path: str) -> None:
    """On the routes of the gateway itself, with a media type of its own."""
    answer = client.get(path, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    fits(strict_json(answer.data), schema_of(path, "GET", 403, str(answer.content_type)))


@pytest.mark.parametrize(("rule", "path"), [
    ("/v1/models/{name}", "/v1/models/nope"), ("/metrics", "/metrics?model=nope"),
    ("/props", "/props?model=nope"), ("/slots/{number}", "/slots/0?model=nope")])
def test_a_model_that_is_not_there_fits(client: FlaskClient, rule: str, path: str) -> None:
    """Wherever it is named in the URL."""
    answer = client.get(path)
    assert answer.status_code == 404
    fits(strict_json(answer.data), schema_of(rule, "GET", 404, str(answer.content_type)))


def test_a_gateway_with_a_default_model_says_so(build: Build) -> None:
    """A request need not name one then."""
    found = build(default_model="loaded").get("/openapi.json").json
    assert found and "NamedChatView" not in found["components"]["schemas"]
    assert "model" not in found["components"]["schemas"]["ChatView"]["required"]


def test_it_costs_nothing_before_it_is_asked_for() -> None:
    """A gateway starts without what makes the document, and makes it once."""
    program = """
import sys
from app.factory import create_app
from app.settings import Settings
client = create_app(Settings()).test_client()
assert "apispec" not in sys.modules
assert client.get("/health").status_code == 200 and "apispec" not in sys.modules
first = client.get("/openapi.json")
assert first.content_type == "application/json" and "apispec" in sys.modules
sys.modules["app.api.openapi.document"].document = None
assert client.get("/openapi.json").data == first.data
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
