"""What stays the same in the bodies of one conversation, and differs between two."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.payload import JsonBody

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
Fields = dict[str, Any]


def says(role: str, text: Any) -> Fields:
    """A message."""
    return {"role": role, "content": text}


HI, ANSWER, MORE = says("user", "hi"), says("assistant", "yes?"), says("user", "more")
BRIEF, LONG = says("system", "Be brief."), says("developer", "Be long.")
HEADER = [{"type": "text", "text": f"x-anthropic-billing-header: cch={n};"} for n in (1, 2)]
RULES = {"type": "text", "text": "Be brief."}

SAME = [
    (CHAT, {"messages": [HI]}, {"messages": [HI, ANSWER, MORE]}),
    (CHAT, {"messages": [BRIEF, LONG, HI]}, {"messages": [BRIEF, LONG, HI, ANSWER, MORE]}),
    (CHAT, {"messages": [HI], "temperature": 1}, {"messages": [HI], "temperature": 0}),
    (RESPONSES, {"input": "hi"}, {"input": [HI, ANSWER, MORE]}),
    (RESPONSES, {"instructions": "x", "input": [BRIEF, HI]},
     {"instructions": "x", "input": [BRIEF, HI, {"type": "function_call"}], "tools": []}),
    (MESSAGES, {"system": "x", "messages": [HI]}, {"system": "x", "messages": [HI, ANSWER, MORE]}),
    (MESSAGES, {"system": [HEADER[0], RULES], "messages": [HI]},
     {"system": [HEADER[1], RULES], "messages": [HI, ANSWER, MORE]}),
]
DIFFERENT = [
    (CHAT, {"messages": [HI]}, {"messages": [MORE]}),
    (CHAT, {"messages": [BRIEF, HI]}, {"messages": [LONG, HI]}),
    (CHAT, {"messages": [BRIEF, HI]}, {"messages": [BRIEF, MORE]}),
    (CHAT, {"messages": [HI], "model": "other"}, {"messages": [HI]}),
    (RESPONSES, {"input": "hi"}, {"input": "more"}),
    (RESPONSES, {"input": "hi"}, {"input": "hi", "instructions": "x"}),
    (RESPONSES, {"input": [BRIEF, HI]}, {"input": [BRIEF, MORE]}),
    (MESSAGES, {"system": "x", "messages": [HI]}, {"system": "y", "messages": [HI]}),
    (MESSAGES, {"system": [RULES], "messages": [HI]}, {"system": [], "messages": [HI]}),
]
NONE = [
    (CHAT, {}), (CHAT, {"messages": []}), (CHAT, {"messages": "hi"}), (CHAT, {"input": "hi"}),
    (RESPONSES, {"instructions": "x"}), (RESPONSES, {"input": ""}), (RESPONSES, {"input": 5}),
    (RESPONSES, {"input": "hi", "previous_response_id": "r1"}), (RESPONSES, {"input": []}),
    (MESSAGES, {"system": "x"}), ("/v1/completions", {"prompt": "hi"}),
    ("/v1/embeddings", {"input": "hi"}), ("/v1/embeddings", {"input": [HI]}),
]


def opening(path: str, fields: Fields) -> str | None:
    """What the body opens with once its model is named as the registry does."""
    return JsonBody(None, {"model": "m", **fields}, path=path).for_model(
        fields.get("model", "org/m:q")).opening


@pytest.mark.parametrize(("path", "first", "later"), SAME)
def test_it_stays_while_the_conversation_goes_on(path: str, first: Fields, later: Fields) -> None:
    """Whatever comes after the first message, and whatever else the body says."""
    assert opening(path, first) == opening(path, later) is not None


@pytest.mark.parametrize(("path", "one", "other"), DIFFERENT)
def test_conversations_differ_by_their_beginnings(path: str, one: Fields, other: Fields) -> None:
    """By model, system text and first message."""
    assert opening(path, one) != opening(path, other)


@pytest.mark.parametrize(("path", "fields"), NONE)
def test_where_nothing_is_known_there_is_none(path: str, fields: Fields) -> None:
    """Such calls are spread by load."""
    assert opening(path, fields) is None
