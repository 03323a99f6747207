"""A chat request: what goes to /v1/chat/completions of which engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.api.ollama.request import chat, probabilities
from app.api.ollama.request.ask import CHAT
from app.engine_facts import EngineFacts
from tests.unit.ollama.request_cases import LLAMA, OTHER, refusal

HI = [{"role": "user", "content": "hi"}]
TOOL = {"type": "function", "function": {
    "name": "f", "description": "d", "strict": True,
    "parameters": {"type": "object", "properties": {"a": {"type": ["string", "null"], "x-y": 1}},
                   "additionalProperties": False}}}
SCHEMA = {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {}}}
GPT_OSS = replace(LLAMA, chat_template="<|start|>{{ role }}<|channel|>analysis")
BAD_FORMAT = 'invalid format: {}; expected "json" or a valid JSON Schema object'


def body(facts: EngineFacts = LLAMA, thinking: bool = False, **fields: Any) -> dict[str, Any]:
    """The body of the ask for a short chat."""
    return chat.ask({"model": "m:1b", "messages": HI, **fields}, facts, thinking).body


def added(facts: EngineFacts = LLAMA, thinking: bool = False, **fields: Any) -> dict[str, Any]:
    """What these fields add to, or change in, the body."""
    plain = body(facts)
    return {key: value for key, value in body(facts, thinking, **fields).items()
            if key not in plain or plain[key] != value}


def test_a_chat_for_llama_server() -> None:
    """Every sampler, a stream with its counts, the prompt cached, and no model yet."""
    ask = chat.ask({"model": "m", "messages": HI, "stream": False}, LLAMA, False)
    assert (ask.target, ask.style, ask.lookups) == ("/v1/chat/completions", CHAT, ())
    assert ask.body == {
        "messages": HI, "n_predict": 40960, "seed": -1, "top_k": 40, "n_keep": 4,
        "temperature": 0.8, "top_p": 0.9, "min_p": 0.0, "typical_p": 1.0, "presence_penalty": 0.0,
        "frequency_penalty": 0.0, "repeat_last_n": 64, "repeat_penalty": 1.0,
        "stream": True, "stream_options": {"include_usage": True}, "cache_prompt": True}


def test_a_chat_for_another_engine() -> None:
    """Nothing that it may not know."""
    assert body(OTHER, stream=False, keep_alive=0, truncate=False, shift=True) == {
        "messages": HI, "stream": True, "stream_options": {"include_usage": True}}


def test_options_are_used() -> None:
    """For both makes, under their names."""
    assert added(options={"num_predict": 5, "temperature": 0}) == {
        "n_predict": 5, "temperature": 0.0}
    assert added(OTHER, options={"num_predict": 5, "top_k": 3}) == {"max_tokens": 5}


@pytest.mark.parametrize("facts", [LLAMA, OTHER], ids=lambda facts: facts.kind)
@pytest.mark.parametrize(("fields", "sent"), [
    ({"format": ""}, {}),
    ({"format": None}, {}),
    ({"format": "json"}, {"type": "json_object"}),
    ({"format": SCHEMA},
     {"type": "json_schema", "json_schema": {"name": "schema", "schema": SCHEMA}}),
    ({"format": {}}, {"type": "json_schema", "json_schema": {"name": "schema", "schema": {}}}),
    ({"options": {"format": "json"}}, {"type": "json_object"}),
    ({"options": {"format": "default"}}, {}),
    ({"options": {"format": ""}}, {}),
    ({"options": {"format": "json"}, "format": ""}, {}),
], ids=repr)
def test_format(fields: dict[str, Any], sent: dict[str, Any], facts: EngineFacts) -> None:
    """Free text, any object, or a schema; among the options only what is valid counts."""
    assert added(facts, **fields) == ({"response_format": sent} if sent else {})


@pytest.mark.parametrize(("value", "shown"), [
    ("xml", '"\\"xml\\""'),
    ("JSON", '"\\"JSON\\""'),
    (True, '"true"'),
    (5, '"5"'),
    ([{"type": "object"}], '"[{\\"type\\":\\"object\\"}]"'),
    ("x" * 300, f'"\\"{"x" * 199}…"'),
])
def test_a_wrong_format_is_refused(value: Any, shown: str) -> None:
    """In Ollama's words."""
    assert refusal(lambda: body(format=value)) == BAD_FORMAT.format(shown)


def arguments(**values: Any) -> dict[str, Any]:
    """Arguments of the engine's template."""
    return {"chat_template_kwargs": values}


THINK: list[tuple[EngineFacts, bool, Any, dict[str, Any]]] = [
    (LLAMA, False, None, {}),
    (LLAMA, False, False, arguments(enable_thinking=False)),
    (LLAMA, True, None, arguments(enable_thinking=True)),
    (LLAMA, True, True, arguments(enable_thinking=True)),
    (LLAMA, True, False, arguments(enable_thinking=False)),
    (LLAMA, True, "low", arguments(enable_thinking=True, reasoning_effort="low")),
    (LLAMA, True, "max", arguments(enable_thinking=True, reasoning_effort="max")),
    (GPT_OSS, True, "max", arguments(enable_thinking=True, reasoning_effort="high")),
    (GPT_OSS, True, "medium", arguments(enable_thinking=True, reasoning_effort="medium")),
    (GPT_OSS, True, False, arguments(enable_thinking=False)),
    (OTHER, False, False, {}),
    (OTHER, True, None, {}),
    (OTHER, True, True, {}),
    (OTHER, True, "high", {"reasoning_effort": "high"}),
    (OTHER, True, "max", {"reasoning_effort": "high"}),
]


@pytest.mark.parametrize(("facts", "capable", "think", "sent"), THINK)
def test_think(facts: EngineFacts, capable: bool, think: Any, sent: dict[str, Any]) -> None:
    """A model that can think does, unless it is told not to; levels are passed on."""
    assert added(facts, capable, think=think) == sent


@pytest.mark.parametrize("think", [True, "low", "max"])
def test_thinking_needs_a_model_that_can(think: Any) -> None:
    """The refusal names the model as it was asked for."""
    assert refusal(lambda: body(think=think)) == '"m:1b" does not support thinking'


@pytest.mark.parametrize("capable", [True, False])
@pytest.mark.parametrize(("think", "start"), [
    ("bogus", 'invalid think value: "bogus" (must be '),
    ("", 'invalid think value: "" (must be '),
    ("true", 'invalid think value: "true" (must be '),
    (1, "think must be a boolean or string ("),
    ([], "think must be a boolean or string ("),
])
def test_a_wrong_think_is_refused(think: Any, start: str, capable: bool) -> None:
    """In Ollama's words, whether or not the model can think."""
    text = start + '"high", "medium", "low", "max", true, or false)'
    assert refusal(lambda: body(think=think, thinking=capable)) == text


@pytest.mark.parametrize(("fields", "sent", "asked"), [
    ({"logprobs": True}, {"logprobs": True, "top_logprobs": 1}, 0),
    ({"logprobs": True, "top_logprobs": 0}, {"logprobs": True, "top_logprobs": 1}, 0),
    ({"logprobs": True, "top_logprobs": 5}, {"logprobs": True, "top_logprobs": 5}, 5),
    ({"logprobs": True, "top_logprobs": 20.0}, {"logprobs": True, "top_logprobs": 20}, 20),
    ({"logprobs": False, "top_logprobs": 5}, {}, None),
    ({"top_logprobs": 5}, {}, None),
])
def test_logprobs(fields: dict[str, Any], sent: dict[str, Any], asked: int | None) -> None:
    """At least one alternative is asked for, since with none there are no probabilities."""
    assert added(**fields) == sent
    assert added(OTHER, **fields) == sent
    assert probabilities.asked(fields) == asked


@pytest.mark.parametrize(("fields", "text"), [
    ({"top_logprobs": 21}, "top_logprobs must be between 0 and 20"),
    ({"top_logprobs": -1}, "top_logprobs must be between 0 and 20"),
    ({"top_logprobs": 1.5}, "top_logprobs must be a whole number"),
    ({"top_logprobs": "5"}, "top_logprobs must be a whole number"),
    ({"top_logprobs": True}, "top_logprobs must be a whole number"),
    ({"logprobs": 1}, "logprobs must be true or false"),
])
def test_wrong_logprobs_are_refused(fields: dict[str, Any], text: str) -> None:
    """The refusal names the field."""
    assert refusal(lambda: body(**fields)) == text


@pytest.mark.parametrize(("tools", "sent"), [
    ([], {}),
    (None, {}),
    ([TOOL], {"tools": [TOOL]}),
    ([{"function": TOOL["function"]}], {"tools": [{"function": TOOL["function"],
                                                   "type": "function"}]}),
    ([{"type": "function", "function": {"name": "g"}}], {"tools": [{
        "type": "function",
        "function": {"name": "g", "parameters": {"type": "object", "properties": {}}}}]}),
])
def test_tools(tools: Any, sent: dict[str, Any]) -> None:
    """Unchanged but for what engines insist on; an empty list is left out."""
    assert added(tools=tools) == sent


@pytest.mark.parametrize(("tools", "text"), [
    ({}, "tools must be a list"),
    (["f"], "tools[0] must be an object"),
    ([TOOL, {"type": "function"}], "tools[1].function.name must not be blank"),
    ([{"function": 5}], "tools[0].function must be an object"),
    ([{"function": {"name": "f", "parameters": []}}],
     "tools[0].function.parameters must be an object"),
])
def test_wrong_tools_are_refused(tools: Any, text: str) -> None:
    """The refusal says which field of which tool it is."""
    assert refusal(lambda: body(tools=tools)) == text


def test_tools_and_format_go_together() -> None:
    """Some clients send both."""
    assert added(tools=[TOOL], format="json") == {
        "tools": [TOOL], "response_format": {"type": "json_object"}}


def test_logprobs_give_way_to_tools() -> None:
    """llama-server refuses both in one stream; another engine may take them."""
    assert added(tools=[TOOL], logprobs=True) == {"tools": [TOOL]}
    assert added(OTHER, tools=[TOOL], logprobs=True) == {
        "tools": [TOOL], "logprobs": True, "top_logprobs": 1}


@pytest.mark.parametrize(("fields", "text"), [
    ({"options": []}, "options must be an object"),
    ({"options": "x"}, "options must be an object"),
    ({"messages": {}}, "messages must be a list"),
])
def test_a_field_of_a_wrong_type_is_refused(fields: dict[str, Any], text: str) -> None:
    """The refusal names the field."""
    assert refusal(lambda: body(**fields)) == text
