"""/api/generate with a prompt that goes to the engine as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import data, stream
from tests.server.calls import ollama_error
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import asked, generate, sent
from tests.server.ollama.engine_answers import LLAMA_ROUTES, V1_TEXT, routed, stopped, token
from tests.server.ollama.ndjson import failure, response, success
from tests.server.ollama.served_models import MARKER, OPENING, OTHER, SEER, SLOT

PNG = "iVBORw0KGgo="  # the first bytes of one
JPEG = "/9j/4AAQ"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def test_raw_goes_as_it_is(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Not a character is added, none interpreted; there is no context behind it."""
    prompt = "<|im_start|>user\n{{ .Prompt }} [img-0]北\n\n"
    said, last = success(generate(gateway.url, raw=True, prompt=prompt, options={"seed": 5}))
    body = sent(engine, "/completion")
    assert (body["prompt"], body["seed"], body["n_predict"]) == (prompt, 5, 10 * SLOT)
    assert (response(said), last["done_reason"], "context" in last) == ("Hello", "stop", False)
    assert len(engine.requests) == 1


@pytest.mark.parametrize(("tokens", "prompt"), [
    ([1, 1], "hi"), ([1, 1, 2], "hi"), ([1], f"{OPENING}hi"), ([1, 2], f"{OPENING}hi"),
    (None, f"{OPENING}hi"), ([], f"{OPENING}hi")])
def test_a_prompt_does_not_begin_twice(
        gateway: GatewayProcess, engine: RawEngine, tokens: Any, prompt: str) -> None:
    """The token goes where the vocabulary puts it there anyway; else it stays, as written."""
    told = reply(200, json.dumps({"tokens": tokens}).encode())
    engine.answer_with(routed({**LLAMA_ROUTES, "/tokenize": told}))
    for fields in ({"raw": True, "prompt": f"{OPENING}hi"}, {"template": OPENING + "{{.Prompt}}"}):
        assert success(generate(gateway.url, **fields))
    assert [body["prompt"] for body in asked(engine, "/completion")] == [prompt] * 2
    assert asked(engine, "/tokenize")[0]["content"] == OPENING


def test_only_the_tokens_text_begins_a_prompt(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Nothing is asked for any other prompt."""
    assert success(generate(gateway.url, raw=True, prompt=f" {OPENING}hi"))
    assert [request.path for request in engine.requests] == ["/completion"]


def test_raw_for_another_make(gateway: GatewayProcess, other: RawEngine) -> None:
    """By the endpoint that all have."""
    said, last = success(generate(gateway.url, model=OTHER, raw=True, prompt="x"))
    body = sent(other, V1_TEXT)
    assert set(body) == {"model", "prompt", "stream", "stream_options"} and body["prompt"] == "x"
    assert (response(said), last["done_reason"]) == ("Hello", "stop")


RAW_FIELDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"format": "json"}, {"json_schema": {"type": "object"}}),
    ({"format": SCHEMA}, {"json_schema": SCHEMA}), ({"format": ""}, {}),
    ({"logprobs": True}, {"n_probs": 1}), ({"logprobs": True, "top_logprobs": 3}, {"n_probs": 3}),
    ({"options": {"stop": ["", "x"]}}, {"stop": ["x"]}),
]


@pytest.mark.parametrize(("fields", "made"), RAW_FIELDS, ids=repr)
def test_fields_beside_a_raw_prompt(gateway: GatewayProcess, engine: RawEngine,
                                    fields: dict[str, Any], made: dict[str, Any]) -> None:
    """Under llama-server's own names; for "json" a grammar or a schema of any object will do."""
    assert success(generate(gateway.url, raw=True, **fields))
    body = sent(engine, "/completion")
    named = {name: body[name] for name in ("json_schema", "grammar", "n_probs", "stop")
             if name in body}
    assert named == made or (fields.get("format") == "json" and set(named) == {"grammar"})


def test_probabilities_of_a_raw_answer(gateway: GatewayProcess, engine: RawEngine) -> None:
    """llama-server's own form of them is told in Ollama's."""
    entry = {"id": 5, "token": "a", "bytes": [97], "logprob": -0.5, "top_logprobs": [
        {"id": 6, "token": "b", "bytes": [98], "logprob": -1.5}]}
    event = data({"index": 0, "content": "a", "stop": False, "completion_probabilities": [entry]})
    engine.answer_with(stream("chunked", [event, stopped()]))
    [line], _ = success(generate(gateway.url, raw=True, logprobs=True, top_logprobs=1))
    assert line["logprobs"] == [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [
        {"token": "b", "logprob": -1.5, "bytes": [98]}]}]


@pytest.mark.parametrize("fields", [
    {"template": "x"}, {"system": "x"}, {"context": [1]}], ids=repr)
def test_raw_excludes(gateway: GatewayProcess, engine: RawEngine, fields: dict[str, Any]) -> None:
    """What would change the prompt."""
    answer = generate(gateway.url, raw=True, **fields)
    assert (answer.status, ollama_error(answer)) == (
        400, "raw mode does not support template, system, or context")
    assert engine.requests == []


@pytest.mark.parametrize(("prompt", "fields", "text", "pictures"), [
    ("a", {"raw": True}, f"{MARKER}{MARKER}a", [PNG, JPEG]),
    ("a[img-1]b[img-0]", {"raw": True}, f"a{MARKER}b{MARKER}", [JPEG, PNG]),
    ("a", {"template": "<{{ .Prompt }}>"}, f"<{MARKER}{MARKER}a>", [PNG, JPEG]),
], ids=repr)
def test_images_of_a_raw_prompt(
        gateway: GatewayProcess, engine: RawEngine, prompt: str, fields: dict[str, Any], text: str,
        pictures: list[str]) -> None:
    """Stand where Ollama's tags stand, else in front; the engine has a mark of its own for them."""
    assert success(generate(gateway.url, model=SEER, prompt=prompt, images=[PNG, JPEG], **fields))
    assert sent(engine, "/completion")["prompt"] == {"prompt_string": text,
                                                     "multimodal_data": pictures}


@pytest.mark.parametrize(("kind", "reason"), [
    ("eos", "stop"), ("word", "stop"), ("limit", "length"), ("none", "stop")])
def test_why_a_raw_answer_ends(
        gateway: GatewayProcess, engine: RawEngine, kind: str, reason: str) -> None:
    """llama-server's own words for it; nothing has to follow its last event."""
    engine.answer_with(stream("chunked", [token("a"), stopped(kind)]))
    assert success(generate(gateway.url, raw=True))[1]["done_reason"] == reason


def test_a_raw_answer_that_goes_round_in_circles(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Is ended after thirty repetitions, in order; the engine's work is ended with it."""
    engine.answer_with(stream("chunked", [*[token(" la")] * 1000, stopped()]))
    said, last = success(generate(gateway.url, raw=True))
    assert last["done_reason"] == "length" and 30 <= response(said).count("la") <= 32


def test_a_raw_answer_that_breaks_off(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Ends with an error, as a chat does."""
    engine.answer_with(stream("chunked", [token("a"), token("b")]))
    said, text = failure(generate(gateway.url, raw=True))
    assert response(said) == "ab" and text
    assert generate(gateway.url, raw=True, stream=False).status == 502
