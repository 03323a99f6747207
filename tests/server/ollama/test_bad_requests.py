"""Requests that no engine gets to see: broken, of wrong types, to unknown places, or not served."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.raw_client import RawClient, fetch
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import JSON, SHOW, ollama_error, post, to_bytes
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import (
    CHAT, EMBED, EMBEDDINGS, GENERATE, HI, PS, PULL, TAGS, VERSION, WORK,
)
from tests.server.ollama.ndjson import success
from tests.server.ollama.served_models import GONE, NICK, OTHER, TALKER

POSTS = [*WORK, SHOW, PULL]
GETS = ["/", VERSION, TAGS, PS]
SHA = "0" * 64
BODIES: dict[str, bytes] = {
    "words": b"hello", "cut": b'{"model":"m"', "list": b"[]", "null": b"null", "number": b"5",
    "text": b'"x"', "nan": b'{"model":"m","x":NaN}', "infinity": b'{"model":"m","x":-Infinity}',
    "too_large_a_number": b'{"model":"m","x":1e999}', "bad_utf8": b'{"model":"caf\xe9"}',
    "twice": b'{"model":"a","model":"b"}', "twice_by_escape": b'{"model":"a","mod\\u0065l":"b"}',
    "deep": b'{"model":"m","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "two_values": b'{"model":"m"}{"model":"n"}', "form": b"model=m&prompt=x",
}


@pytest.mark.parametrize("path", POSTS)
def test_a_body_is_needed(gateway: GatewayProcess, path: str) -> None:
    """In Ollama's words."""
    answer = post(gateway.url, path, b"")
    assert (answer.status, ollama_error(answer)) == (400, "missing request body")


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_broken_body_is_refused(
        gateway: GatewayProcess, engine: RawEngine, path: str, body: bytes) -> None:
    """As JSON, and nothing else happens; the worker lives on."""
    workers = gateway.workers()
    answer = post(gateway.url, path, body)
    assert (answer.status, bool(ollama_error(answer))) == (400, True)
    assert engine.requests == [] and gateway.workers() == workers


CHAT_TYPES: list[dict[str, Any]] = [
    {"messages": "hi"}, {"messages": {}}, {"messages": ["hi"]}, {"messages": [None]},
    {"messages": [{"role": 5, "content": "x"}]}, {"messages": [{"role": "user", "content": 5}]},
    {"messages": [{"content": "x"}]}, {"messages": [{"role": "", "content": "x"}]},
    {"messages": [{**HI[0], "images": "x"}]}, {"messages": [{**HI[0], "images": [5]}]},
    {"messages": [{"role": "assistant", "tool_calls": "x"}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": 5}}]}]},
    {"messages": [{"role": "assistant", "tool_calls": [
        {"function": {"name": "f", "arguments": "x"}}]}]},
    {"messages": [{"role": "assistant", "tool_calls": [
        {"function": {"name": "f", "arguments": [1]}}]}]},
    {"model": OTHER, "tools": "x"}, {"model": OTHER, "tools": ["x"]},
    {"model": OTHER, "tools": [{}]},
]
BOTH_TYPES: list[dict[str, Any]] = [
    {"stream": "yes"}, {"stream": 1}, {"truncate": "no"}, {"options": []}, {"options": "x"},
    {"logprobs": 1}, {"top_logprobs": "3"}, {"top_logprobs": 1.5},
]
GENERATE_TYPES: list[dict[str, Any]] = [
    {"prompt": 5}, {"prompt": ["x"]}, {"system": 5}, {"suffix": []}, {"template": 5}, {"raw": "x"},
    {"context": "x"}, {"context": ["x"]}, {"context": [-1]}, {"context": [1.5]},
    {"width": 1.5}, {"steps": 0.5},
    {"images": "x"}, {"images": [5]},
]
EMBED_TYPES: list[dict[str, Any]] = [
    {"truncate": "no"}, {"dimensions": "3"}, {"dimensions": True}, {"dimensions": []},
    {"dimensions": 1.5}, {"dimensions": -1}, {"dimensions": 1e-9},
]
TYPES = [(CHAT, fields) for fields in CHAT_TYPES + BOTH_TYPES] + [
    (GENERATE, fields) for fields in BOTH_TYPES + GENERATE_TYPES] + [
    (EMBED, fields) for fields in EMBED_TYPES] + [(EMBEDDINGS, {"prompt": 5})]


@pytest.mark.parametrize(("path", "fields"), TYPES, ids=repr)
def test_a_wrong_type_is_refused(
        gateway: GatewayProcess, engine: RawEngine, other: RawEngine, path: str,
        fields: dict[str, Any]) -> None:
    """Before an engine has worked for it."""
    answer = post(gateway.url, path, {**WORK[path], **fields})
    assert (answer.status, bool(ollama_error(answer))) == (400, True), answer.body
    assert engine.requests == other.requests == []


@pytest.mark.parametrize("path", [CHAT, GENERATE])
@pytest.mark.parametrize("model", [TALKER, "nope", ""])
@pytest.mark.parametrize("top", [-1, 21, 10**30])
def test_too_many_alternatives(
        gateway: GatewayProcess, engine: RawEngine, path: str, model: str, top: int) -> None:
    """The first thing that is looked at."""
    answer = post(gateway.url, path, {**WORK[path], "model": model, "top_logprobs": top})
    assert (answer.status, ollama_error(answer)) == (
        400, "top_logprobs must be between 0 and 20")


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nope", "/api/chat/x", "/api/tags/x",
                                  "/api/blobs", "/API/tags"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "HEAD"])
def test_an_unknown_place(gateway: GatewayProcess, path: str, method: str) -> None:
    """Is a 404 in JSON."""
    answer = fetch(gateway.url, method, path, b"{}" if method == "POST" else None)
    assert answer.status == 404 and answer.header("Content-Type") == "application/json"
    if path.startswith("/api") and method != "HEAD":
        assert ollama_error(answer)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "HEAD"])
@pytest.mark.parametrize("path", [
    TAGS, CHAT, "/api/delete", f"/api/blobs/sha256:{SHA}", "/api/nope"])
def test_a_trailing_slash_changes_nothing(
        gateway: GatewayProcess, engine: RawEngine, path: str, method: str) -> None:
    """The answer is there at once, as not every client follows a redirect with its body."""
    body = b"{}" if method in ("POST", "DELETE") else None
    plain = fetch(gateway.url, method, path, body)
    slashed = fetch(gateway.url, method, f"{path}/", body)
    assert (slashed.status, slashed.header("Content-Type")) == (
        plain.status, plain.header("Content-Type"))
    assert slashed.body.replace(f"{path}/".encode(), path.encode()) == plain.body
    assert fetch(gateway.url, method, f"{path}//", body).status == 404


def test_a_chat_with_a_trailing_slash(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Is a chat."""
    assert success(post(gateway.url, f"{CHAT}/", WORK[CHAT]))


METHODS = [*[("GET", path, "POST") for path in POSTS], *[("HEAD", path, "POST") for path in POSTS],
           *[("POST", path, "GET") for path in GETS[1:]], ("PUT", CHAT, "POST"),
           ("DELETE", TAGS, "GET"), ("POST", "/api/delete", "DELETE"), ("GET", "/api/copy", "POST"),
           ("PATCH", VERSION, "GET")]


@pytest.mark.parametrize(("method", "path", "allowed"), METHODS)
def test_another_method_is_a_405(
        gateway: GatewayProcess, method: str, path: str, allowed: str) -> None:
    """That says which ones there are."""
    answer = fetch(gateway.url, method, path, b"{}" if method == "POST" else None)
    assert answer.status == 405 and answer.header("Content-Type") == "application/json"
    assert allowed in [each.strip() for each in (answer.header("Allow") or "").split(",")]
    assert method == "HEAD" or ollama_error(answer)


@pytest.mark.parametrize("body", [{"model": "foo"}, {"name": "nope"}])
def test_models_are_not_pushed(gateway: GatewayProcess, body: dict[str, Any]) -> None:
    """It is said so; the connection is good for the next request."""
    with RawClient(gateway.url) as client:
        refused = client.request("POST", "/api/push", JSON, to_bytes(body)).whole()
        assert (refused.status, bool(ollama_error(refused))) == (501, True)
        assert client.request("GET", VERSION).whole().status == 200


PRESENT = ["foo", "foo:latest", "FOO", TALKER, NICK, GONE]
PULLED = b'{"status":"pulling manifest"}\n{"status":"success"}\n'
MISSING = "pull model manifest: file does not exist"


@pytest.mark.parametrize("word", ["model", "name"])
@pytest.mark.parametrize("name", PRESENT)
def test_a_model_that_is_there_is_pulled_at_once(
        gateway: GatewayProcess, name: str, word: str) -> None:
    """By the events of a pull, or by the last of them."""
    asked = {word: name, "insecure": True, "username": "u", "password": "p"}
    answer = post(gateway.url, PULL, asked)
    assert (answer.status, answer.header("Content-Type")) == (200, "application/x-ndjson")
    assert answer.body == PULLED
    answer = post(gateway.url, PULL, {**asked, "stream": False})
    assert (answer.status, answer.header("Content-Type")) == (200, "application/json")
    assert answer.json() == {"status": "success"}


@pytest.mark.parametrize("name", ["nope", "foo:1b", "bar", "hf.co/x"])
def test_a_model_that_is_not_there_cannot_be_pulled(gateway: GatewayProcess, name: str) -> None:
    """Because a pull has begun by then, its failure is an event."""
    answer = post(gateway.url, PULL, {"model": name})
    assert (answer.status, answer.header("Content-Type")) == (200, "application/x-ndjson")
    begin = b'{"status":"pulling manifest"}\n{"error":"%b' % MISSING.encode()
    assert answer.body.startswith(begin) and answer.body.endswith(b'"}\n')
    answer = post(gateway.url, PULL, {"model": name, "stream": False})
    assert answer.status == 500 and ollama_error(answer).startswith(f"{MISSING}: '{name}' names")


@pytest.mark.parametrize("body", [{}, {"model": ""}, {"name": None}, {"model": " "}], ids=repr)
def test_a_pull_of_nothing(gateway: GatewayProcess, body: dict[str, Any]) -> None:
    """Has no name."""
    answer = post(gateway.url, PULL, body)
    assert (answer.status, ollama_error(answer)) == (400, "invalid model name")


@pytest.mark.parametrize("body", [{}, {"model": ""}, {"name": ""}, {"model": None, "name": None}],
                         ids=repr)
@pytest.mark.parametrize("path", [CHAT, SHOW])
def test_a_model_is_required(gateway: GatewayProcess, path: str, body: dict[str, Any]) -> None:
    """Nothing is guessed."""
    answer = post(gateway.url, path, {**body, "messages": HI})
    assert (answer.status, ollama_error(answer)) == (400, "model is required")
