"""/api/generate: a chat of one question, a template, or what belongs between two texts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.raw_engine import RawEngine
from tests.server.calls import ollama_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import GENERATE, asked, generate, sent
from tests.server.ollama.engine_answers import (
    LLAMA_ROUTES, TIMINGS, V1_CHAT, V1_TEXT, failing, prompt_of, routed, streamed, text_of,
)
from tests.server.ollama.ndjson import METRICS, response, success, whole
from tests.server.ollama.served_models import EMBEDDER, FILLER, OTHER, SEER, TALKER, THINKER

USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be brief"}
PNG = "iVBORw0KGgo="  # the first bytes of one
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


def test_images_of_a_prompt(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Are parts of the question."""
    assert success(generate(gateway.url, model=SEER, images=[PNG]))
    [message] = sent(engine)["messages"]
    assert message["content"] == [
        {"type": "text", "text": "hi"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]


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
