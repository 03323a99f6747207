"""Options, format and think of a request, as engines of either make are told of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.raw_engine import RawEngine
from tests.server.calls import ollama_error
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import chat, generate, sent
from tests.server.ollama.ndjson import success
from tests.server.ollama.served_models import (
    HARMONY, OTHER, SLOT, TALKER, THINKER, TOOLER,
)

# github.com/ollama/ollama, api/types.go, DefaultOptions; a run without an end has one nevertheless.
DEFAULTS = {
    "n_predict": 10 * SLOT, "seed": -1, "top_k": 40, "n_keep": 4, "temperature": 0.8, "top_p": 0.9,
    "min_p": 0, "typical_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "repeat_last_n": 64,
    "repeat_penalty": 1}
PORTABLE = {"max_tokens", "temperature", "top_p", "seed", "stop", "presence_penalty",
            "frequency_penalty"}
SAMPLING = {*DEFAULTS, *PORTABLE, "mirostat", "mirostat_tau", "mirostat_eta"}
LEGACY = {
    "mirostat": 0, "mirostat_eta": 0.1, "mirostat_tau": 5.0, "tfs_z": 1, "penalize_newline": True,
    "numa": False, "low_vram": True, "f16_kv": True, "vocab_only": False, "use_mlock": True,
    "logits_all": False, "embedding_only": False, "num_gqa": 8, "rope_frequency_base": 1e6,
    "rope_frequency_scale": 1.0}
FOR_THE_START = {"num_ctx": 131072, "num_batch": 512, "num_gpu": 99, "main_gpu": 0,
                 "use_mmap": True, "num_thread": 8, "draft_num_predict": 4}


def sampling(body: dict[str, Any]) -> dict[str, Any]:
    """What of a request to an engine is about sampling."""
    return {name: value for name, value in body.items() if name in SAMPLING}


ONE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"num_predict": 128}, {"n_predict": 128}),
    ({"num_predict": -1}, {"n_predict": 10 * SLOT}),
    ({"num_predict": -2}, {"n_predict": SLOT}),
    ({"num_predict": 0}, {"n_predict": 1}),
    ({"num_predict": 10**9}, {"n_predict": 10 * SLOT}),
    ({"repeat_last_n": -1}, {"repeat_last_n": SLOT}),
    ({"repeat_last_n": 0}, {"repeat_last_n": 0}),
    ({"stop": ""}, {}),
    ({"stop": [""]}, {}),
    ({"stop": []}, {}),
    ({"stop": ["", "END"]}, {"stop": ["END"]}),
    ({"stop": "END"}, {"stop": ["END"]}),
    ({"temperature": 0, "top_p": 1, "top_k": 1, "min_p": 0.05, "typical_p": 0.9, "seed": 42},
     {"temperature": 0, "top_p": 1, "top_k": 1, "min_p": 0.05, "typical_p": 0.9, "seed": 42}),
    ({"repeat_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": -0.5, "num_keep": 24},
     {"repeat_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": -0.5, "n_keep": 24}),
    ({"temperature": -1, "top_k": -5, "num_keep": -7},
     {"temperature": 0, "top_k": 0, "n_keep": -1}),
    ({"seed": 42.0, "top_k": 20.9}, {"seed": 42, "top_k": 20}),
    ({name: None for name in (*DEFAULTS, *LEGACY, *FOR_THE_START, "stop", "num_predict")}, {}),
    (FOR_THE_START, {}),
    ({name: value for name, value in LEGACY.items() if "mirostat" not in name}, {}),
    ({"unknown": {"a": 1}, "keep_alive": "5m", "format": "json", "low_vram": "x"}, {}),
]


@pytest.mark.parametrize(("options", "changes"), ONE, ids=repr)
def test_a_llama_server_gets_every_sampler(
        gateway: GatewayProcess, engine: RawEngine, options: dict[str, Any],
        changes: dict[str, Any]) -> None:
    """With Ollama's defaults, within the range that the engine takes."""
    assert success(chat(gateway.url, options=options))
    assert sampling(sent(engine)) == {**DEFAULTS, **changes}


def test_options_of_old_are_no_error(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Many clients send them all; what the engine does not know does not get there."""
    assert success(chat(gateway.url, options={**LEGACY, **FOR_THE_START}))
    gone = {name for name in LEGACY if "mirostat" not in name} | set(FOR_THE_START)
    assert not gone & set(sent(engine))


@pytest.mark.parametrize(("options", "fields"), [
    ({}, {}),
    ({"num_predict": 5, "temperature": 0.5, "top_p": 0.5, "seed": 7, "stop": ["x"],
      "presence_penalty": 1, "frequency_penalty": -1},
     {"max_tokens": 5, "temperature": 0.5, "top_p": 0.5, "seed": 7, "stop": ["x"],
      "presence_penalty": 1, "frequency_penalty": -1}),
    ({"top_k": 3, "min_p": 0.1, "typical_p": 0.5, "repeat_penalty": 1.3, "repeat_last_n": -1,
      "num_keep": 3, **LEGACY, **FOR_THE_START}, {}),
    ({"num_predict": -1, "seed": -1, "stop": ""}, {}), ({"num_predict": -2}, {}),
], ids=repr)
def test_other_makes_get_portable_fields(
        gateway: GatewayProcess, other: RawEngine, options: dict[str, Any],
        fields: dict[str, Any]) -> None:
    """And of those only what was asked for."""
    assert success(chat(gateway.url, model=OTHER, options=options))
    body = sent(other)
    assert sampling(body) == fields
    assert set(body) <= {"model", "messages", "stream", "stream_options", *PORTABLE}


@pytest.mark.parametrize(("option", "kind"), [
    ({"num_predict": "5"}, "integer"), ({"seed": True}, "integer"), ({"top_k": []}, "integer"),
    ({"temperature": "hot"}, "float32"), ({"top_p": {}}, "float32"),
    ({"stop": 5}, "array"), ({"stop": [5]}, "an array of strings")], ids=repr)
def test_an_option_of_a_wrong_type(gateway: GatewayProcess, engine: RawEngine,
                                   option: dict[str, Any], kind: str) -> None:
    """Is refused by name, in Ollama's words."""
    for answer in (chat(gateway.url, options=option), generate(gateway.url, options=option)):
        assert answer.status == 400
        assert ollama_error(answer) == f'option "{list(option)[0]}" must be of ' + (
            f"type {kind}" if " " not in kind else kind)
    assert engine.requests == []


SCHEMA = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}},
          "required": ["z"], "additionalProperties": False, "$defs": {"x": {}}}
TOOLS = [{"type": "function", "function": {
    "name": "f", "description": "d", "strict": True,
    "parameters": {"type": "object", "properties": {
        "a": {"type": "string", "pattern": "^x", "minLength": 2}}, "additionalProperties": False}}}]
FORMATS: list[tuple[dict[str, Any], Any]] = [
    ({}, None), ({"format": ""}, None), ({"format": None}, None),
    ({"format": "json"}, {"type": "json_object"}),
    ({"format": SCHEMA}, {"type": "json_schema",
                          "json_schema": {"name": "schema", "schema": SCHEMA}}),
    ({"options": {"format": "json"}}, {"type": "json_object"}),
]


@pytest.mark.parametrize("tools", [[], TOOLS], ids=["alone", "with_tools"])
@pytest.mark.parametrize(("fields", "made"), FORMATS, ids=repr)
def test_format(gateway: GatewayProcess, engine: RawEngine, fields: dict[str, Any], made: Any,
                tools: list[Any]) -> None:
    """Free, JSON or a schema, also together with tools; keys keep their order."""
    assert success(chat(gateway.url, model=TOOLER, tools=tools, **fields))
    body = sent(engine)
    assert body.get("response_format") == made and body.get("tools", []) == tools
    if made and "json_schema" in made:
        assert list(body["response_format"]["json_schema"]["schema"]) == list(SCHEMA)


@pytest.mark.parametrize("value", ["xml", "JSON", 5, ["json"], True, False], ids=repr)
def test_a_bad_format_is_refused(
        gateway: GatewayProcess, engine: RawEngine, value: Any) -> None:
    """In Ollama's words, before the engine is asked."""
    answer = chat(gateway.url, format=value)
    assert answer.status == 400
    text = ollama_error(answer)
    assert text.startswith("invalid format: ")
    assert text.endswith('; expected "json" or a valid JSON Schema object')
    assert engine.requests == []


NO_WORD = object()
# model, think → whether its template is told to think (None: not a word), and the level
THINK: list[tuple[str, Any, bool | None, str | None]] = [
    (THINKER, NO_WORD, True, None), (THINKER, None, True, None), (THINKER, True, True, None),
    (THINKER, False, False, None), (THINKER, "low", True, "low"), (THINKER, "max", True, "max"),
    (THINKER, "medium", True, "medium"), (THINKER, "high", True, "high"),
    (HARMONY, NO_WORD, True, None), (HARMONY, True, True, None), (HARMONY, "low", True, "low"),
    (HARMONY, "max", True, "high"), (HARMONY, False, False, None),
    (TALKER, NO_WORD, None, None), (TALKER, None, None, None),
]


@pytest.mark.parametrize("ask", [chat, generate], ids=["chat", "generate"])
@pytest.mark.parametrize(("model", "think", "enabled", "level"), THINK)
def test_think(gateway: GatewayProcess, engine: RawEngine, ask: Any, model: str, think: Any,
               enabled: bool | None, level: str | None) -> None:
    """Of its own accord a model that can does; the engine is told by a true boolean."""
    fields = {} if think is NO_WORD else {"think": think}
    assert success(ask(gateway.url, model=model, **fields))
    body = sent(engine)
    told = body.get("chat_template_kwargs", {})
    assert told.get("enable_thinking") is enabled
    assert told.get("reasoning_effort") == body.get("reasoning_effort", level) == level


@pytest.mark.parametrize("ask", [chat, generate], ids=["chat", "generate"])
def test_every_model_can_be_told_not_to_think(
        gateway: GatewayProcess, engine: RawEngine, ask: Any) -> None:
    """Home Assistant and Zed always send it."""
    assert success(ask(gateway.url, think=False))
    assert not sent(engine).get("chat_template_kwargs", {}).get("enable_thinking")


@pytest.mark.parametrize("ask", [chat, generate], ids=["chat", "generate"])
@pytest.mark.parametrize("think", [True, "low", "max"])
def test_a_model_that_does_not_think(
        gateway: GatewayProcess, engine: RawEngine, ask: Any, think: Any) -> None:
    """Is named as it was asked for."""
    answer = ask(gateway.url, model=TALKER.upper(), think=think)
    assert answer.status == 400
    assert ollama_error(answer) == f'"{TALKER.upper()}" does not support thinking'
    assert engine.requests == []


BAD_LEVEL = 'must be "high", "medium", "low", "max", true, or false'
BAD_TYPE = ('think must be a boolean or string '
            '("high", "medium", "low", "max", true, or false)')


@pytest.mark.parametrize("model", [THINKER, TALKER, HARMONY, OTHER])
@pytest.mark.parametrize(("think", "text"), [
    ("bogus", f'invalid think value: "bogus" ({BAD_LEVEL})'),
    ("", f'invalid think value: "" ({BAD_LEVEL})'), ("True", f'invalid think value: "True" '
                                                             f'({BAD_LEVEL})'),
    (1, BAD_TYPE), ([], BAD_TYPE), ({}, BAD_TYPE)], ids=repr)
def test_a_think_that_is_no_think(
        gateway: GatewayProcess, engine: RawEngine, model: str, think: Any, text: str) -> None:
    """In Ollama's words, on every model."""
    answer = chat(gateway.url, model=model, think=think)
    assert (answer.status, ollama_error(answer)) == (400, text)
    assert engine.requests == []


@pytest.mark.parametrize("think", [None, True, False])
def test_another_make_is_not_told_how_to_think(
        gateway: GatewayProcess, other: RawEngine, think: Any) -> None:
    """There is no portable word for it."""
    assert success(chat(gateway.url, model=OTHER, think=think))
    assert not {"chat_template_kwargs", "reasoning_effort", "think"} & set(sent(other))
