"""The one object of ``"stream": false``: all that a stream says, and what any stream keeps to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.api.ollama.answer import FailureLine, whole
from app.api.ollama.refusal import Refusal
from app.errors import GatewayError
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev
from tests.unit.ollama.answering import HEAD, METRICS, SHAPES, Line, Lines, answer, read

COUNTS = {**METRICS, "eval_count": 3}
BOTH = pytest.mark.parametrize("lines", SHAPES.values(), ids=SHAPES)


def test_chat() -> None:
    """Content and thinking joined, the end and the metrics of the last line."""
    events = [chunk({"reasoning": "t"}), ev("a"), ev("北"), STOP, DONE]
    one = whole(SHAPES["chat"](iter(events), answer()))
    message = {"role": "assistant", "content": "a北", "thinking": "t"}
    assert one == {**HEAD, "message": message, "done": True, "done_reason": "stop", **COUNTS}
    assert list(one) == ["model", "created_at", "message", "done", "done_reason", *METRICS]


def test_generate() -> None:
    """The same in the other shape."""
    events = [chunk({"reasoning": "t"}), ev("a"), ev("北"), chunk({}, "length"), DONE]
    one = whole(SHAPES["generate"](iter(events), answer()))
    assert one == {**HEAD, "response": "a北", "thinking": "t", "done": True,
                   "done_reason": "length", **COUNTS}


@BOTH
def test_empty_answer(lines: Lines) -> None:
    """An answer without a word is one too; the text is there and empty, thinking is not."""
    one = whole(lines(iter([STOP, DONE]), answer()))
    spoken = one.get("message", one)
    assert spoken.get("content", spoken.get("response")) == ""
    assert "thinking" not in spoken and "tool_calls" not in spoken and "logprobs" not in one


def test_lines_are_left_alone() -> None:
    """Making one object of the lines changes none of them."""
    lines = list(SHAPES["chat"](iter([ev("a"), STOP]), answer()))
    before = json.dumps(lines)
    whole(lines)
    assert json.dumps(lines) == before


SCALARS = (st.none() | st.booleans() | st.integers(-3, 10**20) | st.text(max_size=6)
           | st.floats())
WORDS = st.sampled_from(["content", "reasoning", "reasoning_content", "tool_calls", "role", "index",
                         "function", "name", "arguments", "id", "type", "error", "token"])
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(WORDS, inner, max_size=3), max_leaves=6)
TEXTS = st.text(max_size=5)
CALLS = st.lists(st.fixed_dictionaries({}, optional={
    "index": st.integers(0, 2), "id": TEXTS, "function": st.fixed_dictionaries({}, optional={
        "name": TEXTS, "arguments": st.sampled_from(["", "{}", '{"a":', "1}", "x", "NaN"])})}),
    max_size=2)
DELTAS = st.fixed_dictionaries({}, optional={
    "content": TEXTS | JSON, "reasoning": TEXTS | JSON, "tool_calls": CALLS | JSON})
EVENTS = st.fixed_dictionaries({}, optional={
    "choices": JSON | st.lists(st.fixed_dictionaries({}, optional={
        "index": st.sampled_from([0, 0, 0, 1, None]), "delta": DELTAS | JSON, "text": TEXTS,
        "finish_reason": st.sampled_from([None, None, "stop", "length", 5]),
        "logprobs": st.fixed_dictionaries({"content": st.lists(JSON, max_size=2)}) | JSON}),
        max_size=2),
    "usage": JSON, "timings": st.dictionaries(
        st.sampled_from(["cache_n", "prompt_n", "prompt_ms", "predicted_n", "predicted_ms"]), JSON),
    "content": TEXTS | JSON, "stop": st.booleans(), "stop_type": JSON, "tokens": JSON,
    "completion_probabilities": JSON, "type": JSON, "error": st.sampled_from([None] * 7 + ["e"]),
})
STREAMS = st.lists(EVENTS.map(data) | st.sampled_from([STOP, DONE, b": ping\n\n", b"data: {\n\n"]),
                   max_size=6)
CONTENT_KEYS = {"model", "created_at", "message", "response", "thinking", "done", "logprobs",
                "tool_calls"}


def taken(lines: Iterator[Line]) -> list[Line]:
    """The lines, with what is raised before the first in the place of a failure."""
    try:
        return list(lines)
    except (GatewayError, Refusal) as failure:
        return [FailureLine(failure)]


@BOTH
@settings(max_examples=300, deadline=None, database=None)
@given(STREAMS, st.sampled_from(["chat", "text", "completion"]), st.booleans(),
       st.lists(st.integers(0, 900), max_size=5))
def test_any_stream(
    lines: Lines, events: list[bytes], style: str, think: bool, places: list[int]
) -> None:
    """Whatever an engine says: strict JSON, no forbidden keys, one end, whatever the cuts."""
    body = b"".join(events)
    asked: dict[str, Any] = {"style": style, "think_tags": think, "top_logprobs": 2,
                             "monotonic": lambda: 105.0, "context": lambda text, ids: ids}
    found = taken(lines(iter(events), answer(**asked)))
    read(found)
    assert all(line["done"] is False and line.keys() <= CONTENT_KEYS for line in found[:-1])
    last = found[-1]
    if isinstance(last, FailureLine):
        assert last.keys() == {"error"} and isinstance(last["error"], str)
    else:
        assert last["done"] is True and last["done_reason"] in ("stop", "length")
        assert all(type(last[name]) is int and last[name] >= 1 for name in METRICS)
        read([whole(found)])
    edges = [0, *sorted(min(place, len(body)) for place in places), len(body)]
    pieces = [body[a:b] for a, b in zip(edges, edges[1:])]
    assert taken(lines(iter(pieces), answer(**asked))) == found
