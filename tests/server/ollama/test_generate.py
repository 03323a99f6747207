"""/api/generate: a chat of one question, a prompt as it is, or what belongs between two texts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import data, stream
from tests.server.calls import ollama_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import GENERATE, asked, generate, sent
from tests.server.ollama.engine_answers import (
    LLAMA_ROUTES, TIMINGS, V1_CHAT, V1_TEXT, failing, prompt_of, routed, stopped, streamed,
    text_of, token,
)
from tests.server.ollama.ndjson import METRICS, failure, response, success, whole
from tests.server.ollama.served_models import (
    EMBEDDER, FILLER, MARKER, OTHER, SEER, SLOT, TALKER, THINKER,
)

USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be brief"}
PNG = "iVBORw0KGgo="  # the first bytes of one
JPEG = "/9j/4AAQ"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(("fields", "messages"), [
    ({}, [USER]), ({"system": "be brief"}, [SYSTEM, USER]),
    ({"system": "", "template": "", "suffix": "", "context": [], "images": [], "raw": False},
     [USER]),
    ({"system": None, "template": None, "suffix": None, "context": None, "images": None,
      "raw": None}, [USER]),
], ids=repr)
@pytest.mark.parametrize("model", [TALKER, OTHER])
def test_a_prompt_is_a_chat(
        gateway: GatewayProcess, engine: RawEngine, other: RawEngine, model: str,
        fields: dict[str, Any], messages: list[dict[str, Any]]) -> None:
    """Of one question, behind the system text where there is one."""
    said, last = success(generate(gateway.url, model=model, **fields))
    body = sent(engine if model == TALKER else other)
    assert body["messages"] == messages and body["stream"] is True
    assert (response(said), last["response"], last["done_reason"]) == ("Hello", "", "stop")


def test_without_a_stream(gateway: GatewayProcess, engine: RawEngine) -> None:
    """One object with the whole response, the counts of the engine and the context behind it."""
    found = whole(generate(gateway.url, stream=False))
    assert list(found) == ["model", "created_at", "response", "done", "done_reason", "context",
                           *METRICS]
    assert (found["model"], found["response"]) == (TALKER, "Hello")
    assert found["prompt_eval_count"] == TIMINGS["cache_n"] + TIMINGS["prompt_n"]


def text_in(prompt: Any) -> str:
    """A prompt of texts and tokens as one text."""
    parts = prompt if isinstance(prompt, list) else [prompt]
    return "".join(text_of([part]) if isinstance(part, int) else part for part in parts)


def test_the_context_goes_round(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The last line alone has the tokens so far; given back, they come before the next prompt."""
    said, last = success(generate(gateway.url, system="be brief"))
    assert not any("context" in line for line in said)
    first = prompt_of([SYSTEM, USER]) + "Hello"
    assert text_of(last["context"]) == first
    said, last = success(generate(gateway.url, prompt="more", context=last["context"]))
    second = first + prompt_of([{"role": "user", "content": "more"}])
    assert text_in(sent(engine, "/completion")["prompt"]) == second
    assert text_of(last["context"]) == second + "Hello" and response(said) == "Hello"


def test_another_make_cannot_be_told_the_context(gateway: GatewayProcess, other: RawEngine) -> None:
    """Token ids mean nothing to it: they are passed over, and none are given."""
    last = success(generate(gateway.url, model=OTHER, context=[1, 2, 3]))[1]
    assert sent(other)["messages"] == [USER] and "context" not in last
    assert len(other.requests) == 1


@pytest.mark.parametrize("broken", ["/tokenize", "/apply-template"])
def test_an_answer_is_whole_without_its_context(
        gateway: GatewayProcess, engine: RawEngine, broken: str) -> None:
    """What the context is made with may fail."""
    engine.answer_with(routed({**LLAMA_ROUTES, broken: failing(500, "boom")}))
    assert "context" not in success(generate(gateway.url))[1]


def test_raw_goes_as_it_is(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Not a character is added, none interpreted; there is no context behind it."""
    prompt = "<|im_start|>user\n{{ .Prompt }} [img-0]北\n\n"
    said, last = success(generate(gateway.url, raw=True, prompt=prompt, options={"seed": 5}))
    body = sent(engine, "/completion")
    assert (body["prompt"], body["seed"], body["n_predict"]) == (prompt, 5, 10 * SLOT)
    assert (response(said), last["done_reason"], "context" in last) == ("Hello", "stop", False)
    assert len(engine.requests) == 1


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


@pytest.mark.parametrize("raw", [{}, {"raw": True}, {"raw": False}], ids=repr)
def test_a_suffix_is_filled_up_to(
        gateway: GatewayProcess, engine: RawEngine, raw: dict[str, Any]) -> None:
    """The engine puts the model's own marks around both texts."""
    said, last = success(generate(gateway.url, model=FILLER, prompt="def f(", suffix="):\n", **raw))
    body = sent(engine, "/infill")
    assert (body["input_prefix"], body["input_suffix"]) == ("def f(", "):\n")
    assert (response(said), last["done_reason"]) == ("between", "stop")
    assert "context" not in last or not raw.get("raw")


def test_a_suffix_for_another_make(gateway: GatewayProcess, other: RawEngine) -> None:
    """Goes along with the prompt."""
    assert success(generate(gateway.url, model=OTHER, prompt="a", suffix="b"))
    body = sent(other, V1_TEXT)
    assert (body["prompt"], body["suffix"]) == ("a", "b")


def test_a_model_that_fills_in_nothing(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Its vocabulary says so, or its engine does: the request is wrong, not the server."""
    answer = generate(gateway.url, suffix="x")
    assert answer.status == 400 and ollama_error(answer).endswith("does not support insert")
    assert TALKER in ollama_error(answer) and engine.requests == []
    engine.answer_with(failing(501, "Infill is not supported by this model: prefix token is "
                                    "missing. ", "not_supported_error"))
    answer = generate(gateway.url, model=FILLER, suffix="x")
    assert answer.status == 400 and f'"{FILLER}" does not support' in ollama_error(answer)


TEMPLATE = "{{ if .System }}[{{ .System }}]{{ end }}<{{ .Prompt }}>{{ .Response }}</s>"


@pytest.mark.parametrize(("template", "fields", "prompt"), [
    (TEMPLATE, {}, "<hi>"), (TEMPLATE, {"system": "s"}, "[s]<hi>"), ("plain", {}, "plain"),
    ("{{- if .System }}a{{ else }}b{{ end -}}  {{ .Prompt }}", {}, "bhi"),
    ("{{.Prompt}}|{{ .Suffix }}", {"suffix": "x"}, "hi|x"),
], ids=repr)
def test_a_template_makes_the_prompt(gateway: GatewayProcess, engine: RawEngine, template: str,
                                     fields: dict[str, Any], prompt: str) -> None:
    """Of Go's language what such templates are written in; the rest is the engine's as it is."""
    assert success(generate(gateway.url, template=template, **fields))
    assert sent(engine, "/completion")["prompt"] == prompt


@pytest.mark.parametrize("template", [
    "{{ range .Messages }}{{ end }}", "{{ if .Prompt }}", "{{ .Prompt", "{{ end }}"])
def test_a_template_that_cannot_be_read(
        gateway: GatewayProcess, engine: RawEngine, template: str) -> None:
    """Is refused with a reason."""
    answer = generate(gateway.url, template=template)
    assert answer.status == 400 and ollama_error(answer).startswith("template: ")
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


def test_images_of_a_prompt(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Are parts of the question."""
    assert success(generate(gateway.url, model=SEER, images=[PNG]))
    [message] = sent(engine)["messages"]
    assert message["content"] == [
        {"type": "text", "text": "hi"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]


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


@pytest.mark.parametrize("body", [
    {"prompt": "x"}, {"model": "", "prompt": "x"}, {"model": None}, {}], ids=repr)
def test_no_model_is_not_found(
        gateway: GatewayProcess, engine: RawEngine, body: dict[str, Any]) -> None:
    """Here, other than in a chat."""
    answer = post(gateway.url, GENERATE, body)
    assert (answer.status, ollama_error(answer)) == (404, "model '' not found")
    assert engine.requests == []


@pytest.mark.parametrize("field", ["width", "height", "steps"])
def test_no_images_are_made(gateway: GatewayProcess, engine: RawEngine, field: str) -> None:
    """Client libraries have fields for it."""
    answer = generate(gateway.url, **{field: 512})
    assert (answer.status, ollama_error(answer)) == (
        400, "image generation models are not currently supported")


def test_a_model_that_only_embeds(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Generates nothing."""
    answer = generate(gateway.url, model=EMBEDDER)
    assert (answer.status, ollama_error(answer)) == (
        400, f'"{EMBEDDER}" does not support generate')


def test_format_of_a_prompt(gateway: GatewayProcess, engine: RawEngine) -> None:
    """As in a chat; a model that thinks does so before."""
    engine.answer_with(routed({V1_CHAT: streamed()}))
    assert success(generate(gateway.url, model=THINKER, format=SCHEMA))
    [body] = asked(engine)
    assert body["response_format"] == {
        "type": "json_schema", "json_schema": {"name": "schema", "schema": SCHEMA}}
    assert body["chat_template_kwargs"]["enable_thinking"] is True
