"""The lesson's own eight tests: an engine that echoes, one that is down, 500 ms of patience."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.raw_client import RawAnswer
from tests.fakes.raw_engine import Exchange, RawEngine
from tests.fakes.registry_home import RegistryHome, gguf
from tests.server.calls import CHAT, get, ollama_error, openai_error, post
from tests.server.conftest import StartGateway

MODEL = "example-org/Tiny-Coder-GGUF:F32"


def echo(exchange: Exchange) -> None:
    """Send back what came; crash or fall asleep when asked to."""
    body = exchange.request.body
    if b"sleep" in body:
        exchange.wait(threading.Event())
    if b"status:500" in body:
        reply(500, b'{"error":{"message":"engine crashed"}}')(exchange)
    else:
        reply(200, b'{"echo":' + body + b"}")(exchange)


@pytest.fixture(scope="module")
def url(start_gateway: StartGateway,
        tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The gateway of the tests, its registry holding one model with three keys."""
    home = RegistryHome(tmp_path_factory.mktemp("suite") / "home")
    data = gguf({"general.architecture": "llama", "general.size_label": "7B",
                 "llama.context_length": 4096})
    home.add(MODEL, data, commit="4b1c", revision="main")
    with RawEngine(echo) as engine:
        yield start_gateway({"loop": {
            "home": str(home.path), "read-timeout": "500ms",
            "engines": [{"url": engine.url, "models": [MODEL]},
                        {"url": "http://127.0.0.1:1", "models": ["down-model"]}]}}).url


def say(url: str, content: str, model: str = MODEL) -> RawAnswer:
    """One user message."""
    return post(url, CHAT, {"model": model, "messages": [{"role": "user", "content": content}]})


def test_the_list_has_the_registrys_model(url: str) -> None:
    """GET /v1/models gives id, object, created and owner of the one model, and what it takes."""
    [model] = get(url, "/v1/models").json()["data"]
    assert model.pop("meta")["size"] > 0
    assert model.pop("status")["value"] in ("loaded", "unloaded")
    assert model == {"id": MODEL, "object": "model", "created": 1790847000, "owned_by": "loop",
                     "context_length": 4096, "max_model_len": 4096}


def test_unknown_fields_reach_the_engine(url: str) -> None:
    """Fields that the protocol does not know arrive with their values."""
    answer = post(url, CHAT, {"model": MODEL, "messages": [{"role": "user", "content": "hi"}],
                              "top_k": 40, "cache_prompt": True})
    assert answer.status == 200
    assert answer.json()["echo"]["top_k"] == 40
    assert answer.json()["echo"]["cache_prompt"] is True


def test_an_unknown_model_is_a_404(url: str) -> None:
    """The client can test the code."""
    answer = say(url, "hi", model="nope")
    assert (answer.status, openai_error(answer)["code"]) == (404, "model_not_found")


def test_a_wrong_field_is_a_400(url: str) -> None:
    """The param names the field."""
    answer = post(url, CHAT, {"model": MODEL, "messages": []})
    assert (answer.status, openai_error(answer)["param"]) == (400, "messages")


def test_an_engines_500_is_a_502(url: str) -> None:
    """The message carries the engine's status and text."""
    answer = say(url, "status:500")
    assert answer.status == 502
    assert openai_error(answer) == {
        "message": "the engine answered 500: engine crashed", "type": "server_error",
        "param": None, "code": "upstream_error"}


def test_a_dead_port_is_a_502(url: str) -> None:
    """Where nothing listens, the engine is unavailable."""
    answer = say(url, "hi", model="down-model")
    assert answer.status == 502
    assert openai_error(answer)["code"] == "engine_unavailable"
    assert openai_error(answer)["message"] == "no engine is listening at http://127.0.0.1:1"


def test_a_slow_engine_is_a_504(url: str) -> None:
    """The message carries the limit in milliseconds."""
    answer = say(url, "sleep")
    assert (answer.status, openai_error(answer)["code"]) == (504, "engine_timeout")
    assert openai_error(answer)["message"] == "the engine did not answer within 500 ms"


def test_the_three_ollama_endpoints(url: str) -> None:
    """Tags and show tell the model's facts, ps the model that was just used."""
    [tag] = get(url, "/api/tags").json()["models"]
    assert (tag["name"], tag["details"]["parameter_size"]) == (MODEL, "7B")
    shown = post(url, "/api/show", {"model": MODEL}).json()
    assert shown["model_info"]["llama.context_length"] == 4096
    missing = post(url, "/api/show", {"model": "nope"})
    assert (missing.status, ollama_error(missing)) == (404, "model 'nope' not found")
    assert say(url, "hi").status == 200
    [running] = get(url, "/api/ps").json()["models"]
    assert (running["model"], running["context_length"]) == (MODEL, 4096)
