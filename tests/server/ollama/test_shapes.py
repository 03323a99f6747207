"""What the clients of Ollama read, over HTTP: every document and every line, by their own rules."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from ollama import (
    ChatResponse, EmbedResponse, GenerateResponse, ListResponse, ProcessResponse, ShowResponse,
)

from tests.fakes.engine_steps import silence
from tests.fakes.raw_client import RawAnswer, RawClient, fetch, request_bytes
from tests.fakes.raw_engine import RawEngine
from tests.fakes.sse import read_events
from tests.fakes.stream_steps import DONE, chunk, ev, stream
from tests.server.calls import CHAT as V1_CHAT
from tests.server.calls import JSON, SHOW, get, post, to_bytes
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama import client_answers as answers
from tests.server.ollama.asking import (
    CHAT, GENERATE, HI, PS, PULL, TAGS, VERSION, WORK, chat, embed, generate,
)
from tests.server.ollama.engine_answers import COUNTS
from tests.server.ollama.ndjson import lines, whole
from tests.server.ollama.served_models import (
    EMBEDDER, FILLER, LLAMA, PULLED, SEER, SLOT, THINKER, TOOLER,
)
from tests.unit.ollama import client_shapes as client

Json = dict[str, Any]


@pytest.fixture
def tags(gateway: GatewayProcess) -> list[Json]:
    """The list."""
    return list(document(get(gateway.url, TAGS))["models"])


@pytest.fixture(params=PULLED)
def name(request: pytest.FixtureRequest) -> str:
    """Each model as the registry names it."""
    return str(request.param)


@pytest.fixture
def shown(gateway: GatewayProcess, name: str) -> Json:
    """Everything about one model."""
    return document(post(gateway.url, SHOW, {"model": name}))


def document(answer: RawAnswer) -> Json:
    """A JSON object."""
    assert answer.status == 200, answer.body
    assert (answer.header("Content-Type") or "").partition(";")[0] == "application/json"
    return dict(answer.json())


def test_every_client_reads_the_list(tags: list[Json]) -> None:
    """One entry that it cannot read would cost it the whole list."""
    assert len(tags) == len(PULLED)
    client.open_webui(tags)
    ListResponse.model_validate({"models": tags})
    for tag in tags:
        assert client.roo_tag(tag) == tag["name"] == tag["model"]
        assert client.zed_tag(tag)["size"] > 0
        client.ollama_kit_tag(tag)
        assert client.page_assist(tag) is not tag["name"].startswith(EMBEDDER)
    assert [tag["name"] for tag in tags if client.ollama_kit_tag(tag)] == [f"{SEER}:latest"]


def test_every_client_reads_a_model(shown: Json, name: str) -> None:
    """With the context that its engine gives to a call, under one key only."""
    context = SLOT if name in LLAMA else 4096
    ShowResponse.model_validate(shown)
    client.ollama_kit_show(shown)
    assert client.roo_show(shown) == (context, name in (TOOLER, THINKER, "harmony:20b"))
    assert client.zed_show(shown)[0] == context
    assert client.copilot(shown, name)[1] == context
    assert client.anything_llm(shown) == (name == EMBEDDER, context)
    parameters, fills_in = client.continue_dev(shown)
    assert parameters == ({"num_ctx": str(SLOT)} if name in LLAMA else {})
    assert fills_in is (name == FILLER)


def test_capabilities_are_true(gateway: GatewayProcess) -> None:
    """Of the template, the vocabulary, the pooling and the projector."""
    found = {name: set(post(gateway.url, SHOW, {"model": name}).json()["capabilities"])
             for name in PULLED}
    others = {name: {"completion"} for name in PULLED}
    assert found == {
        **others, TOOLER: {"completion", "tools"}, THINKER: {"completion", "tools", "thinking"},
        "harmony:20b": {"completion", "tools", "thinking"}, SEER: {"completion", "vision"},
        FILLER: {"completion", "insert"}, EMBEDDER: {"embedding"}}


def test_every_client_tells_the_models_apart(gateway: GatewayProcess, tags: list[Json]) -> None:
    """By digests; the list agrees with what is shown."""
    shows = [document(post(gateway.url, SHOW, {"model": tag["name"]})) for tag in tags]
    assert len(client.llm_ollama(tags, shows)) == len(tags)
    for tag, show in zip(tags, shows):
        assert set(tag["capabilities"]) == set(show["capabilities"])
        assert tag["modified_at"] == show["modified_at"]


def test_arrays_are_there_when_asked_for(gateway: GatewayProcess) -> None:
    """`verbose` brings what is long; without it there are scalars."""
    for fields in ({}, {"verbose": False}, {"verbose": None}):
        info = document(post(gateway.url, SHOW, {"model": THINKER, **fields}))["model_info"]
        assert not [key for key, value in info.items() if isinstance(value, list) and value]
    info = document(post(gateway.url, SHOW, {"model": THINKER, "verbose": True}))["model_info"]
    assert info["tokenizer.ggml.tokens"] == ["a", "b"]
    assert info["general.architecture"] == "qwen3" and info["qwen3.context_length"] == SLOT


def test_every_client_reads_what_runs(gateway: GatewayProcess, engine: RawEngine,
                                      tags: list[Json]) -> None:
    """For ever included."""
    for name, keep in (("foo", -1), (TOOLER, "5m")):
        assert whole(post(gateway.url, CHAT, {"model": name, "keep_alive": keep}))
    models = document(get(gateway.url, PS))["models"]
    ProcessResponse.model_validate({"models": models})
    by_name = {tag["name"]: tag for tag in tags}
    for model in models:
        assert isinstance(client.open_webui_running(model), datetime)
        client.home_assistant(by_name[model["name"]], model)
    assert {"foo:latest", f"{TOOLER}:latest"} <= {model["name"] for model in models}


def test_every_client_reads_a_chat(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Text, calls, counts and the end of it."""
    answer = chat(gateway.url)
    found = lines(answer)
    assert answers.zed_chat(found) == ("Hello", [])
    assert answers.ollama_kit_chat(found) == answers.continue_dev_chat(found) == "Hello"
    assert answers.ollama_js(found)["done_reason"] == "stop"
    assert answers.llm_ollama(found) == (12, 3)
    assert answers.anything_llm(found) > 0 and answers.raycast(found)
    assert answers.langchain(found) == ("Hello", "stop")
    assert answers.open_webui(answer.body) < 1000
    assert "".join(ChatResponse.model_validate(line).message.content or "" for line in found) == (
        "Hello")


def test_every_client_reads_tool_calls(gateway: GatewayProcess, engine: RawEngine) -> None:
    """All of them, though some look at the first of a line only."""
    calls = [{"index": i, "id": f"c{i}", "type": "function", "function": {
        "name": f"f{i}", "arguments": '{"a":1}'}} for i in range(2)]
    engine.answer_with(stream("chunked", [
        chunk({"tool_calls": calls}), chunk({}, "tool_calls"), COUNTS, DONE]))
    tools = [{"type": "function", "function": {"name": "f0"}}]
    found = lines(chat(gateway.url, model=TOOLER, tools=tools))
    assert answers.zed_chat(found)[1] == [("f0", {"a": 1}), ("f1", {"a": 1})]
    parsed = [ChatResponse.model_validate(line).message.tool_calls or [] for line in found]
    assert [call.function.name for calls in parsed for call in calls] == ["f0", "f1"]


def test_every_client_reads_other_answers(gateway: GatewayProcess, engine: RawEngine) -> None:
    """To a prompt, to inputs, to a load; whole or in lines."""
    found = lines(generate(gateway.url))
    assert answers.ollama_js(found) and answers.raycast(found)
    assert "".join(GenerateResponse.model_validate(line).response for line in found) == "Hello"
    assert GenerateResponse.model_validate(whole(generate(gateway.url, stream=False))).context
    assert ChatResponse.model_validate(whole(post(gateway.url, CHAT, {"model": "foo"}))).done
    vectors = EmbedResponse.model_validate(embed(gateway.url, input=["a", "b"]).json()).embeddings
    assert [len(vector) for vector in vectors] == [3, 3]


@pytest.mark.parametrize("path", ["/", VERSION, TAGS, PS])
def test_head_is_get_without_the_body(gateway: GatewayProcess, path: str) -> None:
    """Enchanted asks so whether anyone is there."""
    got, asked = get(gateway.url, path), fetch(gateway.url, "HEAD", path)
    assert (asked.status, asked.body) == (200, b"")
    for header in ("Content-Type", "Content-Length"):
        assert asked.header(header) == got.header(header)


def test_it_is_known_for_ollama(gateway: GatewayProcess) -> None:
    """By a line of text and a release that clients find new enough."""
    alive = get(gateway.url, "/")
    assert (alive.status, alive.body) == (200, b"Ollama is running")
    assert alive.header("Content-Type") == "text/plain; charset=utf-8"
    version = document(get(gateway.url, VERSION))["version"]
    assert [int(part) for part in version.split(".")] >= [0, 6, 4]


@pytest.mark.parametrize("path", [VERSION, TAGS])
def test_no_engine_is_asked_for_the_list(
        gateway: GatewayProcess, engine: RawEngine, monkeypatch: pytest.MonkeyPatch,
        path: str) -> None:
    """Clients give up on it after a second, and ask for it twice a minute."""
    monkeypatch.setattr(engine, "probe_script", silence)
    assert document(get(gateway.url, path))
    assert engine.probes == engine.requests == []


TYPES = [[], *[[("Content-Type", kind)] for kind in (
    "application/x-www-form-urlencoded", "text/plain", "application/json; charset=UTF-8",
    "application/octet-stream", "multipart/form-data", "nonsense")]]
BODIES = {**WORK, SHOW: {"model": "foo"}, PULL: {"model": "foo"}}


@pytest.mark.parametrize("headers", TYPES, ids=repr)
@pytest.mark.parametrize("path", BODIES)
def test_any_content_type_will_do(
        gateway: GatewayProcess, engine: RawEngine, path: str,
        headers: list[tuple[str, str]]) -> None:
    """curl calls everything a form."""
    answer = post(gateway.url, path, BODIES[path], headers)
    assert answer.status == 200 and b'"error"' not in answer.body


def test_a_large_form(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Frameworks have limits for forms; this is none."""
    body = {**WORK[GENERATE], "prompt": "x" * 600_000}
    answer = post(gateway.url, GENERATE, body, TYPES[1])
    assert lines(answer)[-1]["done"] and b"x" * 600_000 in engine.requests[0].body


def test_a_body_in_chunks(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The engine gets it with a length."""
    body = to_bytes(WORK[GENERATE])
    head = request_bytes("POST", GENERATE, [
        ("Host", "x"), *JSON, ("Transfer-Encoding", "chunked"), ("Expect", "100-continue")])
    with RawClient(gateway.url) as raw:
        raw.send(head + b"".join(b"1\r\n%b\r\n" % body[i:i + 1] for i in range(len(body))))
        raw.send(b"0\r\nX-Trailer: 1\r\n\r\n")
        assert lines(raw.answer("POST").whole())[-1]["done"]
    [request] = [each for each in engine.requests if each.path == V1_CHAT]
    assert request.all("Content-Length") == [str(len(request.body))]
    assert not request.all("Transfer-Encoding") and not request.all("Expect")


def test_copilots_way_to_a_chat(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Version, list, each model, then the other API with tools."""
    agent = ("User-Agent", "GitHubCopilotChat/0.38.2")
    assert document(fetch(gateway.url, "GET", VERSION, None, [agent]))["version"]
    listed = [tag["model"] for tag in document(get(gateway.url, TAGS))["models"]]
    model = next(name for name in listed if name.startswith(TOOLER))
    shown = document(post(gateway.url, SHOW, {"model": model}, [*JSON, agent]))
    assert client.copilot(shown, model) == (model, SLOT, True, False)
    pieces = [ev("a"), chunk({}, "stop"), DONE]
    engine.answer_with(stream("chunked", pieces))
    body = {"model": model, "stream": True, "messages": HI, "tools": [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}
    answer = post(gateway.url, V1_CHAT, body)
    assert (answer.status, answer.body) == (200, b"".join(pieces))
    assert len(read_events(answer.body)[0]) == 3


DESKTOP: list[tuple[str, str, int]] = [
    ("GET", "/api/status", 200), ("POST", "/api/me", 401), ("POST", "/api/signout", 401),
    ("GET", "/api/experimental/model-recommendations", 200),
]


@pytest.mark.parametrize(("method", "path", "status"), DESKTOP)
def test_the_desktop_app_gets_its_answers(
        gateway: GatewayProcess, method: str, path: str, status: int) -> None:
    """Those of a server that is nobody's account: no cloud, not signed in, no recommendations."""
    answer = fetch(gateway.url, method, path, b"" if method == "POST" else None)
    assert answer.status == status
    found = answer.json()
    if status == 401:
        assert isinstance(found["error"], str)
    else:
        assert found.get("cloud", {}).get("disabled") is True or found["recommendations"] == []
