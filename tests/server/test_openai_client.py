"""The official OpenAI client in front of the gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletion

from tests.fakes.engine_steps import reply, silence
from tests.fakes.raw_engine import RawEngine, Script
from tests.fakes.registry_home import RegistryHome
from tests.server.conftest import StartGateway
from tests.server.gateway_process import GatewayProcess

NAME = "example-org/Tiny-Coder-GGUF:F32"


@pytest.fixture(scope="module")
def coder(start_gateway: StartGateway, shared_engine: RawEngine,
          tmp_path_factory: pytest.TempPathFactory) -> GatewayProcess:
    """A gateway with one model whose name has a slash and a colon."""
    home = RegistryHome(tmp_path_factory.mktemp("openai") / "home")
    home.add(NAME)
    return start_gateway({"loop": {"home": str(home.path), "read-timeout": "500ms", "engines": [
        {"url": shared_engine.url, "models": [NAME]},
        {"url": "http://127.0.0.1:1", "models": ["gone"]}]}})


@pytest.fixture
def client(coder: GatewayProcess) -> Iterator[OpenAI]:
    """A client that tries everything once."""
    with OpenAI(base_url=f"{coder.url}/v1", api_key="sk-none", max_retries=0) as client:
        yield client


def chat(client: OpenAI, model: str = NAME, **fields: Any) -> ChatCompletion:
    """One user message."""
    answer = client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": "hi"}], **fields)
    assert isinstance(answer, ChatCompletion)
    return answer


def test_it_lists_models(client: OpenAI) -> None:
    """The list has its type."""
    [model] = client.models.list().data
    assert (model.id, model.object, model.owned_by) == (NAME, "model", "loop")
    assert model.created == 1790847000


def test_it_retrieves_a_model_whose_name_has_a_slash(client: OpenAI) -> None:
    """However the client writes the name into the URL."""
    assert client.models.retrieve(NAME).id == NAME


def test_it_chats(client: OpenAI, engine: RawEngine) -> None:
    """The answer has its type; extension fields reach the engine."""
    answer = chat(client, temperature=0.5, extra_body={"top_k": 40})
    assert answer.choices[0].message.content == "hi"
    assert answer.usage and answer.usage.total_tokens == 5
    sent = json.loads(engine.requests[0].body)
    assert (sent["model"], sent["temperature"], sent["top_k"]) == (NAME, 0.5, 40)
    assert "sk-none" not in str(engine.requests[0].headers)


JUNOS = {"x_juno_session_id": "sess-1", "x_juno_priority": "HIGH", "x_juno_top_k": 40}


def test_it_sends_what_only_the_gateway_reads(client: OpenAI, engine: RawEngine) -> None:
    """By ``extra_body``; of the three the engine sees what it understands."""
    answer = chat(client, max_tokens=9, max_completion_tokens=5, extra_body=JUNOS)
    assert answer.choices[0].message.content == "hi"
    assert json.loads(engine.requests[0].body) == {
        "model": NAME, "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 5, "max_completion_tokens": 5, "top_k": 40}


@pytest.mark.parametrize("field", JUNOS)
def test_it_names_a_wrong_field_of_junos(client: OpenAI, engine: RawEngine, field: str) -> None:
    """A 400 is a BadRequestError there too."""
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, extra_body={field: [1]})
    assert caught.value.param == field and engine.connections == []


def test_it_reads_the_id_of_a_call(client: OpenAI, engine: RawEngine) -> None:
    """The id that the engine saw is the one that the client can report."""
    told = client.chat.completions.with_raw_response.create(
        model=NAME, messages=[{"role": "user", "content": "hi"}]).headers["x-request-id"]
    assert engine.requests[0].all("X-Request-Id") == [told]


def test_it_names_a_wrong_field(client: OpenAI) -> None:
    """A 400 is a BadRequestError with its param."""
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, temperature=3)
    assert (caught.value.param, caught.value.type) == ("temperature", "invalid_request_error")


def test_it_knows_an_unknown_model(client: OpenAI) -> None:
    """A 404 is a NotFoundError with its code, on both routes."""
    with pytest.raises(openai.NotFoundError) as caught:
        chat(client, model="org/nope")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    assert "the model 'org/nope' does not exist" in caught.value.message
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("org/nope")
    assert caught.value.code == "model_not_found"


FAULTS: list[tuple[Script, type[openai.APIStatusError], int, str | None]] = [
    (reply(500, b'{"error":{"message":"boom"}}'), openai.InternalServerError, 502,
     "upstream_error"),
    (silence, openai.InternalServerError, 504, "engine_timeout"),
    (reply(429, b'{"error":{"message":"slow down","code":"busy"}}'), openai.RateLimitError, 429,
     "busy"),
    (reply(400, b'{"error":{"message":"too long"}}'), openai.BadRequestError, 400, None),
    (reply(503, b'{"error":{"message":"loading"}}'), openai.InternalServerError, 503, None),
]


@pytest.mark.parametrize(("script", "kind", "status", "code"), FAULTS,
                         ids=[str(status) for _, _, status, _ in FAULTS])
def test_it_raises_by_status(client: OpenAI, engine: RawEngine, script: Script,
                             kind: type[openai.APIStatusError], status: int,
                             code: str | None) -> None:
    """Each fault of an engine has its class, status and code."""
    engine.answer_with(script)
    with pytest.raises(kind) as caught:
        chat(client)
    assert (caught.value.status_code, caught.value.code) == (status, code)


def test_it_raises_for_a_dead_engine(client: OpenAI) -> None:
    """Nothing listens: a 502 whose code tells it from a crash."""
    with pytest.raises(openai.InternalServerError) as caught:
        chat(client, model="gone")
    assert (caught.value.status_code, caught.value.code) == (502, "engine_unavailable")


def test_its_own_retries_work(coder: GatewayProcess, engine: RawEngine) -> None:
    """A loading engine's 503 with Retry-After is tried again by the client, not the gateway."""
    loading = reply(503, b'{"error":{"message":"loading"}}', [
        ("Content-Type", "application/json"), ("Retry-After", "0.01")])
    engine.answer_with(loading, reply())
    with OpenAI(base_url=f"{coder.url}/v1", api_key="sk-none", max_retries=2) as client:
        assert chat(client).choices[0].message.content == "hi"
    assert len(engine.requests) == 2
