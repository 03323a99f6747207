"""Lines of /api/generate: the same road as /api/chat, in the other shape, and the context."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.ollama.answer import chat_lines, generate_lines, whole
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev
from tests.unit.ollama.answering import HEAD, METRICS, answer, generate, read

LAST = {**HEAD, "response": "", "done": True, "done_reason": "stop", **METRICS}


def tokens(text: str, *ids: Any) -> bytes:
    """One event of llama-server's /completion with the ids of its text."""
    return data({"content": text, "tokens": list(ids), "stop": False})


ENDED = data({"content": "", "tokens": [], "stop": True, "stop_type": "eos"})


def test_response_and_thinking() -> None:
    """The text is in "response", thinking beside it."""
    lines = generate(chunk({"reasoning": "t"}), ev("a"), STOP, DONE)
    assert lines == [
        {**HEAD, "response": "", "thinking": "t", "done": False},
        {**HEAD, "response": "a", "done": False},
        {**LAST, "eval_count": 2},
    ]


def test_fields_stand_in_the_order_of_ollama() -> None:
    """Order of a line and of the last one, and of the one object without a stream."""
    event = data({"choices": [{"delta": {"reasoning": "t", "content": "a"}, "logprobs": {
        "content": [{"token": "a", "logprob": -1.0}]}}]})
    call = chunk({"tool_calls": [{"index": 0, "function": {"name": "f"}}]})
    pieces = [event, call, STOP, DONE]
    said, called, last = generate(*pieces, context=lambda text, ids: [1])
    assert list(said) == ["model", "created_at", "response", "thinking", "done", "logprobs"]
    assert list(called) == ["model", "created_at", "response", "done", "tool_calls"]
    ending = ["done", "done_reason", "context", *METRICS]
    assert list(last) == ["model", "created_at", "response", *ending]
    one = whole(generate_lines(pieces, answer(context=lambda text, ids: [1])))
    assert list(one) == ["model", "created_at", "response", "thinking", *ending,
                         "tool_calls", "logprobs"]


def test_context_is_on_the_last_line_only() -> None:
    """The ids that the caller knows for the whole text."""
    asked: list[Any] = []

    def recall(text: str, ids: list[int]) -> list[int]:
        asked.append((text, ids))
        return [1, 2, 3]

    lines = generate(ev("a"), ev("北"), STOP, DONE, context=recall)
    assert [line.get("context") for line in lines] == [None, None, [1, 2, 3]]
    assert asked == [("a北", [])]


def test_context_of_ids_that_the_engine_reports() -> None:
    """The ids of the answer come with its text; what is no id is left out."""
    events = [tokens("a", 5), tokens("b", 6, 7), tokens("", None, "x", 8.5), ENDED]
    lines = generate(*events, style="completion", context=lambda text, ids: [1, *ids])
    assert lines[-1]["context"] == [1, 5, 6, 7]


@pytest.mark.parametrize("recall", [None, lambda text, ids: []], ids=["raw", "unknown"])
def test_no_context_where_nothing_is_known(recall: Any) -> None:
    """An empty context is left away, as Ollama does; a raw answer has none."""
    assert "context" not in generate(ev("a"), STOP, DONE, context=recall)[-1]


def test_context_survives_in_the_one_object() -> None:
    """Without a stream the context is there too."""
    lines = generate_lines(iter([ev("a"), STOP]), answer(context=lambda text, ids: [9]))
    assert whole(lines)["context"] == [9]


def test_chat_has_no_context() -> None:
    """ChatResponse has no such field."""
    lines = read(chat_lines(iter([ev("a"), STOP]), answer(context=lambda text, ids: [9])))
    assert all("context" not in line for line in lines)


def test_context_is_not_asked_of_a_broken_answer() -> None:
    """Nothing is looked up for an answer that ends in an error."""
    def recall(text: str, ids: list[int]) -> list[int]:
        raise AssertionError("asked")

    assert "error" in generate(ev("a"), context=recall)[-1]
