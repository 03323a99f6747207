"""What the lines of a chat say beside text: thinking, probabilities; and all of them as one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev, stream
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import chat, generate, sent
from tests.server.ollama.engine_answers import V1_CHAT, V1_TEXT, routed, streamed
from tests.server.ollama.ndjson import METRICS, content, success, whole
from tests.server.ollama.served_models import OTHER, THINKER

THOUGHT: dict[str, tuple[list[bytes], list[dict[str, str]]]] = {
    "llama_server": (
        [chunk({"reasoning_content": "Hm"}), chunk({"reasoning_content": "."}), ev("Yes")],
        [{"content": "", "thinking": "Hm"}, {"content": "", "thinking": "."}, {"content": "Yes"}]),
    "vllm": ([chunk({"reasoning": "Hm"}), ev("Yes")],
             [{"content": "", "thinking": "Hm"}, {"content": "Yes"}]),
    "both_names": ([chunk({"reasoning": "Hm", "reasoning_content": "Hm"})],
                   [{"content": "", "thinking": "Hm"}]),
    "both_in_one": ([chunk({"reasoning_content": "Hm", "content": "Yes"})],
                    [{"content": "Yes", "thinking": "Hm"}]),
    "null_content": ([chunk({"reasoning_content": "Hm", "content": None})],
                     [{"content": "", "thinking": "Hm"}]),
    "empty_thought": ([chunk({"reasoning_content": "", "content": "Yes"})], [{"content": "Yes"}]),
}


@pytest.mark.parametrize(("events", "messages"), THOUGHT.values(), ids=THOUGHT)
def test_thinking_has_a_field_of_its_own(
        gateway: GatewayProcess, engine: RawEngine, events: list[bytes],
        messages: list[dict[str, str]]) -> None:
    """Whatever the engine calls it, on the line of its event, beside an empty content."""
    engine.answer_with(streamed(*events))
    said, _ = success(chat(gateway.url, model=THINKER))
    assert [line["message"] for line in said] == [
        {"role": "assistant", **message} for message in messages]


def test_thinking_of_a_prompt(gateway: GatewayProcess, engine: RawEngine) -> None:
    """On a line of its own behind an empty response."""
    engine.answer_with(routed({V1_CHAT: streamed(chunk({"reasoning_content": "Hm"}), ev("Yes"))}))
    said, last = success(generate(gateway.url, model=THINKER))
    assert [(line["response"], line.get("thinking")) for line in said] == [("", "Hm"),
                                                                           ("Yes", None)]
    assert last["response"] == "" and "thinking" not in last


def test_without_a_stream_all_lines_are_one(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Texts and thoughts joined; reason and metrics are those of the end."""
    engine.answer_with(streamed(chunk({"reasoning_content": "H"}),
                                chunk({"reasoning_content": "m"}), ev("北"), ev("😀")))
    found = whole(chat(gateway.url, model=THINKER, stream=False))
    assert found["message"] == {"role": "assistant", "content": "北😀", "thinking": "Hm"}
    assert (found["done"], found["done_reason"], found["model"]) == (True, "stop", THINKER)
    assert list(found) == ["model", "created_at", "message", "done", "done_reason", *METRICS]
    assert sent(engine)["stream"] is True


def entry(token: str, raw: list[int], *others: str) -> dict[str, Any]:
    """One entry of the engine's probabilities."""
    alternatives = [{"id": 7, "token": text, "logprob": -2, "bytes": list(text.encode())}
                    for text in others]
    return {"id": 5, "token": token, "logprob": -0.5, "bytes": raw, "top_logprobs": alternatives}


def told(*entries: dict[str, Any], text: str = "x") -> bytes:
    """One event with a text and its probabilities."""
    return data({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None,
                              "logprobs": {"content": list(entries)}}]})


HALF = entry("", [240, 159], "a", "b", "c")
ENTRY = {"token": "", "logprob": -0.5, "bytes": [240, 159]}
ASKED: dict[str, tuple[dict[str, Any], int, list[str] | None]] = {
    "alone": ({"logprobs": True}, 1, None),
    "none_beside": ({"logprobs": True, "top_logprobs": 0}, 1, None),
    "two_beside": ({"logprobs": True, "top_logprobs": 2}, 2, ["a", "b"]),
    "most": ({"logprobs": True, "top_logprobs": 20}, 20, ["a", "b", "c"]),
}


@pytest.mark.parametrize(("fields", "wanted", "others"), ASKED.values(), ids=ASKED)
def test_probabilities(gateway: GatewayProcess, engine: RawEngine, fields: dict[str, Any],
                       wanted: int, others: list[str] | None) -> None:
    """In Ollama's form, at most as many alternatives as were asked for; half a character too."""
    engine.answer_with(streamed(told(HALF)))
    said, last = success(chat(gateway.url, **fields))
    asked = sent(engine)
    assert (asked["logprobs"], asked["top_logprobs"]) == (True, wanted)
    beside = [{"token": text, "logprob": -2, "bytes": list(text.encode())}
              for text in others or []]
    assert [line["logprobs"] for line in said] == [
        [{**ENTRY, "top_logprobs": beside} if others else ENTRY]]
    assert "logprobs" not in last


def test_probabilities_of_a_whole_answer(gateway: GatewayProcess, engine: RawEngine) -> None:
    """All of them, in their order."""
    engine.answer_with(streamed(told(entry("a", [97])), told(entry("b", [98]))))
    found = whole(chat(gateway.url, logprobs=True, stream=False))
    assert [each["token"] for each in found["logprobs"]] == ["a", "b"]
    assert found["message"]["content"] == "xx"


@pytest.mark.parametrize("fields", [{}, {"logprobs": False}, {"logprobs": False,
                                                              "top_logprobs": 5}], ids=repr)
def test_no_probabilities_unasked(
        gateway: GatewayProcess, engine: RawEngine, fields: dict[str, Any]) -> None:
    """A number of alternatives alone is no wish."""
    engine.answer_with(streamed(ev("a")))
    assert success(chat(gateway.url, **fields))
    assert not {"logprobs", "top_logprobs"} & set(sent(engine))


def test_counts_of_an_engine_without_any(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Then pieces are counted and clocked; no metric is missing or zero, for clients divide."""
    engine.answer_with(stream("chunked", [ev("a"), ev("b"), STOP, DONE]))
    last = success(chat(gateway.url))[1]
    assert last["eval_count"] == 2
    durations = [last[name] for name in METRICS if name.endswith("duration")]
    assert all(1 <= each <= last["total_duration"] for each in durations)


ODD_COUNTS: dict[str, dict[str, Any]] = {
    "zero": {"usage": {"prompt_tokens": 0, "completion_tokens": 0},
             "timings": {"prompt_n": 0, "prompt_ms": 0, "predicted_n": 0, "predicted_ms": 0}},
    "null": {"usage": None, "timings": None},
    "null_inside": {"usage": {"prompt_tokens": None}, "timings": {"prompt_ms": None}},
    "texts": {"usage": {"prompt_tokens": "3"}, "timings": {"prompt_ms": "1"}},
    "negative": {"usage": {"prompt_tokens": -1}, "timings": {"predicted_ms": -5.5}},
    "huge": {"timings": {"prompt_ms": 1e300, "predicted_n": 1e300}},
}


@pytest.mark.parametrize("counts", ODD_COUNTS.values(), ids=ODD_COUNTS)
@pytest.mark.parametrize("streaming", [True, False])
def test_no_odd_count_gets_through(gateway: GatewayProcess, engine: RawEngine,
                                   counts: dict[str, Any], streaming: bool) -> None:
    """The six metrics are whole numbers from 1, whatever the engine says (`ndjson` checks)."""
    engine.answer_with(stream("chunked", [ev("a"), STOP, data({"choices": [], **counts}), DONE]))
    answer = chat(gateway.url, stream=streaming)
    last = success(answer)[1] if streaming else whole(answer)
    assert last["eval_count"] == 1


def test_an_engine_of_another_make(gateway: GatewayProcess, other: RawEngine) -> None:
    """Its answers are told in the same way."""
    other.answer_with(routed({V1_CHAT: streamed(ev("a"), ev("b")), V1_TEXT: streamed()}))
    said, last = success(chat(gateway.url, model=OTHER))
    assert (content(said), last["model"]) == ("ab", OTHER)


def test_thinking_that_was_not_wanted_is_not_hidden(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Some templates always think: no token is dropped without a word."""
    engine.answer_with(streamed(chunk({"reasoning_content": "Hm"}), ev("Yes")))
    said, _ = success(chat(gateway.url, model=THINKER, think=False))
    assert [line["message"].get("thinking") for line in said] == ["Hm", None]


TAGGED: dict[str, tuple[list[str], str, str]] = {
    "whole": (["<think>Hm</think>Yes"], "Hm", "Yes"),
    "cut_tags": (["<th", "ink>H", "m</", "think>", "Y", "es"], "Hm", "Yes"),
    "with_lines": (["<think>\nHm\n", "</think>\n\n", "Yes"], "Hm\n", "Yes"),
    "no_thoughts": (["Yes <think>"], "", "Yes <think>"),
    "never_closed": (["<think>", "Hm"], "Hm", ""),
}


@pytest.mark.parametrize(("texts", "thinking", "content_"), TAGGED.values(), ids=TAGGED)
def test_thinking_in_the_text_of_an_engine_that_does_not_part_it(
        gateway: GatewayProcess, other: RawEngine, texts: list[str], thinking: str,
        content_: str) -> None:
    """Is told apart from the answer, wherever its marks are cut."""
    other.answer_with(streamed(*map(ev, texts)))
    said, last = success(chat(gateway.url, model=OTHER, think=True))
    messages = [line["message"] for line in [*said, last]]
    assert "".join(message.get("thinking", "") for message in messages) == thinking
    assert content([*said, last]) == content_
