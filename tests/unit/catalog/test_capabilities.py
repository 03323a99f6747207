"""What a model can do, read from its files and from its engine."""

from __future__ import annotations

from typing import Any

import pytest

from app.catalog.capabilities import capabilities, thinks
from app.catalog.file_facts import Facts
from app.engine_facts import OPENAI, EngineFacts
from tests.fakes.model_files import THINK_TALK, TOOL_TALK

TEMPLATE = "tokenizer.chat_template"
FILL_IN = {f"tokenizer.ggml.fim_{place}_token_id": 1 for place in ("pre", "suf", "mid")}
OLD_FILL_IN = {f"tokenizer.ggml.{n}_token_id": 1 for n in ("prefix", "suffix", "middle")}


def can(values: dict[str, Any], projector: dict[str, Any] | None = None,
        engine: EngineFacts | None = None) -> list[str]:
    """The capabilities of a llama with these keys."""
    facts = Facts({"general.architecture": "llama", **values})
    beside = None if projector is None else Facts({"general.architecture": "clip", **projector})
    return list(capabilities(facts, beside, engine))


@pytest.mark.parametrize(("values", "expected"), [
    ({}, ["completion"]),
    ({TEMPLATE: "{{ messages }}"}, ["completion"]),
    ({TEMPLATE: "{% if tools %}"}, ["tools", "completion"]),
    ({TEMPLATE: "<tool_call>"}, ["tools", "completion"]),
    ({f"{TEMPLATE}.tool_use": "{% if tools %}"}, ["tools", "completion"]),
    ({TEMPLATE: "<think></think>"}, ["thinking", "completion"]),
    ({TEMPLATE: "tools <think> </think>"}, ["tools", "thinking", "completion"]),
    ({TEMPLATE: ["tools"]}, ["completion"]),
    ({"llama.pooling_type": 1}, ["embedding"]),
    ({"llama.pooling_type": 0}, ["embedding"]),
    ({"bert.pooling_type": 1}, ["completion"]),
    ({"llama.vision.block_count": 27}, ["completion", "vision"]),
    ({"llama.vision.block_count": 27, "llama.audio.block_count": 9},
     ["completion", "vision", "audio"]),
    (FILL_IN, ["completion", "insert"]),
    (OLD_FILL_IN, ["completion", "insert"]),
    ({**FILL_IN, "tokenizer.ggml.fim_mid_token_id": None}, ["completion"]),
    ({"tokenizer.ggml.suffix_token_id": 1}, ["completion"]),
    ({"general.architecture": "gpt-oss"}, ["thinking", "completion"]),
    ({"general.architecture": 5}, ["completion"]),
], ids=str)
def test_the_file_says_what_a_model_can_do(values: dict[str, Any], expected: list[str]) -> None:
    """By its templates, its pooling, its own eyes and ears and its vocabulary; nothing twice."""
    assert can(values) == expected


@pytest.mark.parametrize(("projector", "expected"), [
    ({}, ["vision"]), ({"clip.has_vision_encoder": True}, ["vision"]),
    ({"clip.has_audio_encoder": True}, ["audio"]),
    ({"clip.has_vision_encoder": True, "clip.has_audio_encoder": True}, ["vision", "audio"]),
    ({"clip.has_vision_encoder": False, "clip.has_audio_encoder": True}, ["audio"]),
    ({"clip.has_vision_encoder": False}, []),
], ids=str)
def test_a_projector_adds_what_it_encodes(projector: dict[str, Any], expected: list[str]) -> None:
    """One that does not say what it is for is of the time when all were for pictures."""
    assert can({}, projector) == ["completion", *expected]


@pytest.mark.parametrize(("template", "answer"), [
    ("", False), ("<think>", False), ("</think>", False), ("<think>x</think>", True),
    ("{% set content = content.split('</think>')[-1] %}", True),
    ('{% set content = content.split("</think>")|last %}', True),
    ("{{ message.reasoning_content }}{{ content.split('</think>')[-1] }}", False),
    ("{{ message.reasoning_content }}", False),
    ("{% if enable_thinking is defined %}", True), ("<|channel|>analysis<|message|>", True),
    (THINK_TALK, True), (TOOL_TALK, False),
])
def test_a_template_shows_whether_a_model_thinks(template: str, answer: bool) -> None:
    """By marking thoughts, by cutting them off, or by a switch for them."""
    assert thinks(template) is answer


def engine(**facts: Any) -> EngineFacts:
    """A llama-server that has the model loaded."""
    return EngineFacts(**{"kind": "llama-server", "slot_context": 2048, **facts})


@pytest.mark.parametrize(("facts", "expected"), [
    ({}, ["tools", "completion"]),
    ({"supports_tools": False}, ["completion"]),
    ({"supports_tools": True, "chat_template": "plain"}, ["tools", "completion"]),
    ({"chat_template": "plain"}, ["completion"]),
    ({"chat_template": THINK_TALK}, ["tools", "thinking", "completion"]),
    ({"vision": True}, ["tools", "completion", "vision"]),
    ({"vision": True, "audio": True}, ["tools", "completion", "vision", "audio"]),
], ids=str)
def test_the_engine_knows_better(facts: dict[str, Any], expected: list[str]) -> None:
    """It may run with another template, and with a projector or without."""
    assert can({TEMPLATE: TOOL_TALK}, engine=engine(**facts)) == expected


def test_an_engine_without_the_projector_sees_nothing() -> None:
    """Though there is one beside the model."""
    assert can({}, {"clip.has_vision_encoder": True}, engine()) == ["completion"]


@pytest.mark.parametrize("silent", [OPENAI, EngineFacts("llama-server")])
def test_an_engine_that_says_nothing_changes_nothing(silent: EngineFacts) -> None:
    """Its kind alone does not show what its model can do."""
    assert can({TEMPLATE: TOOL_TALK}, {}, silent) == ["tools", "completion", "vision"]
