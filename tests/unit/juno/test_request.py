"""What an engine is asked for in place of a request to /v1/inference."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.extensions import NONE, Extensions
from app.api.juno.request import chat_body, priority
from app.call import Priority

MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi", "x": 1}]
USUAL = {"temperature": 0.7, "top_p": 0.9, "top_k": 50, "max_tokens": 200}
GREEDY = {"temperature": 0, "max_tokens": 200}
NULLS = dict.fromkeys(
    ("temperature", "topK", "topP", "repetitionPenalty", "greedy", "maxTokens", "priority"))


@pytest.mark.parametrize(("sampling", "expected"), [
    (None, USUAL), ({}, USUAL), (NULLS, USUAL), ({"greedy": False}, USUAL),
    ({"unknown": 1, "profile": "creative"}, USUAL),
    ({"temperature": 0}, {**USUAL, "temperature": 0}),
    ({"temperature": 2}, {**USUAL, "temperature": 2}),
    ({"topP": 0.0}, {**USUAL, "top_p": 0.0}),
    ({"topK": 0}, {**USUAL, "top_k": 0}),
    ({"maxTokens": 512}, {**USUAL, "max_tokens": 512}),
    ({"repetitionPenalty": 1.1}, {**USUAL, "repeat_penalty": 1.1}),
    ({"repetitionPenalty": 1}, {**USUAL, "repeat_penalty": 1}),
    ({"priority": "HIGH"}, USUAL),
    ({"greedy": True}, GREEDY),
    ({"greedy": True, "temperature": 1.5, "topK": 3, "topP": 0.5}, GREEDY),
    ({"greedy": True, "repetitionPenalty": 1.2, "maxTokens": 5},
     {"temperature": 0, "max_tokens": 5, "repeat_penalty": 1.2}),
])
def test_sampling_has_an_engines_names_and_junos_defaults(
        sampling: Any, expected: dict[str, Any]) -> None:
    """The likeliest token needs no other rule; null counts as absent."""
    fields = {"messages": MESSAGES, "sampling": sampling, "requestId": "r", "stream": True}
    assert chat_body(fields, NONE) == {"messages": MESSAGES, **expected}


@pytest.mark.parametrize(("sampling", "top_k"), [
    ({}, 7), ({"topK": 3}, 3), ({"topK": 0}, 0), ({"topK": None}, 7)])
def test_an_extension_field_is_for_what_sampling_leaves_out(
        sampling: dict[str, Any], top_k: int) -> None:
    """Its own field comes first."""
    body = chat_body({"messages": MESSAGES, "sampling": sampling}, Extensions(top_k=7))
    assert body["top_k"] == top_k


@pytest.mark.parametrize(("sampling", "beside", "expected"), [
    (None, Priority.NORMAL, Priority.NORMAL), ({}, Priority.LOW, Priority.LOW),
    ({"priority": None}, Priority.HIGH, Priority.HIGH),
    ({"priority": "LOW"}, Priority.HIGH, Priority.LOW),
    ({"priority": "NORMAL"}, Priority.HIGH, Priority.NORMAL),
    ({"priority": "HIGH"}, Priority.NORMAL, Priority.HIGH)])
def test_sampling_says_how_urgent_it_is(
        sampling: Any, beside: Priority, expected: Priority) -> None:
    """Where it does not, the extension field does."""
    assert priority({"sampling": sampling}, Extensions(beside)) is expected
