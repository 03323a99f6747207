"""Paths as clients really write them: what reaches an engine is what was decided on."""

from __future__ import annotations

import pytest

from app.keys import hash_of
from tests.fakes.raw_client import RawAnswer, fetch
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.calls import CHAT, HELLO, JSON, openai_error, to_bytes
from tests.server.conftest import StartGateway
from tests.server.gateway_process import GatewayProcess
from tests.unit.api.test_paths import DOTS

LORA = [
    "/v1/load_lora_adapter", "/v1/load_lora_adapter/", "/v1//load_lora_adapter",
    "/v1/load_lora_adapter//", "//v1/load_lora_adapter", "/v1/LOAD_lora_adapter",
    "/v1/load%5Flora_adapter", "/v1/%6coad_lora_adapter", "/v1/load%255flora_adapter",
    "/v1%2fload_lora_adapter", "/v1/load_lora_adapter%00", "/v1/load_lora_adapter;a",
    "/v1/load_lora_adapter%20", "/v1/unload_lora_adapter/", "http://localhost/v1/load_lora_adapter",
    "/v1/load_lora_adapter?x", "/slots/0?action=erase&model=m",
]


@pytest.fixture(scope="module")
def guarded(shared_engine: RawEngine, start_gateway: StartGateway,
            tmp_path_factory: pytest.TempPathFactory) -> GatewayProcess:
    """A gateway with a key for calls, "user", and one for everything, "root"."""
    home = RegistryHome(tmp_path_factory.mktemp("paths") / "home")
    home.add("m")
    return start_gateway({
        "keys": [{"name": "user", "sha256": hash_of("user")},
                 {"name": "root", "sha256": hash_of("root"), "scopes": ["infer", "admin"]}],
        "loop": {"home": str(home.path), "default-model": "m",
                 "engines": [{"url": shared_engine.url, "models": ["m"]}]}})


def told(gateway: GatewayProcess, path: str, key: str) -> RawAnswer:
    """The answer to a chat that is sent to this path."""
    headers = [*JSON, ("Authorization", f"Bearer {key}")]
    return fetch(gateway.url, "POST", path, to_bytes(HELLO), headers)


@pytest.mark.parametrize("path", [path for path in DOTS if "\t" not in path])
@pytest.mark.parametrize("key", ["user", "root"])
def test_no_dot_segment_reaches_an_engine(
        guarded: GatewayProcess, engine: RawEngine, path: str, key: str) -> None:
    """Whoever sends it, and under whatever route."""
    answer = told(guarded, path, key)
    assert answer.status in (400, 403, 404) and answer.json()["error"]
    if key == "root" and path.startswith("/v1/"):
        assert (answer.status, openai_error(answer)["message"]) == (
            400, "the path holds a dot segment")
    assert engine.requests == [] and engine.probes == []


@pytest.mark.parametrize("path", LORA)
def test_what_an_engine_may_take_for_an_admins_needs_an_admin(
        guarded: GatewayProcess, engine: RawEngine, path: str) -> None:
    """Every spelling of it."""
    answer = told(guarded, path, "user")
    assert (answer.status, openai_error(answer)["code"]) == (403, "scope_missing")
    assert engine.requests == [] and engine.probes == []


@pytest.mark.parametrize(("path", "target"), [
    (f"/{CHAT}", CHAT), ("/v1//chat/completions", CHAT), ("///v1//chat//completions", CHAT),
    ("//v1/embeddings?a=//b", "/v1/embeddings?a=//b"), ("//completion", "/completion"),
    ("/v1/x//y/", "/v1/x/y/"), ("http://localhost//v1/rerank", "/v1/rerank"),
])
def test_slashes_too_many_are_left_out(
        guarded: GatewayProcess, engine: RawEngine, path: str, target: str) -> None:
    """A client whose base URL ends with a slash is served like any other."""
    assert told(guarded, path, "user").status == 200
    assert [request.line for request in engine.requests] == [f"POST {target} HTTP/1.1"]


@pytest.mark.parametrize("path", [f"/{CHAT}", "/v1//chat/completions", "//v1/messages",
                                  "//api/chat"])
def test_what_is_checked_is_checked_there_too(
        guarded: GatewayProcess, engine: RawEngine, path: str) -> None:
    """The route and the shape of errors are those of the plain path."""
    body = to_bytes({**HELLO, "messages": [], "model": 5})
    headers = [*JSON, ("Authorization", "Bearer user")]
    answer = fetch(guarded.url, "POST", path, body, headers)
    plain = fetch(guarded.url, "POST", path.replace("//", "/"), body, headers)
    assert (answer.status, answer.json()) == (plain.status, plain.json())
    assert answer.status == 400 and engine.requests == []
