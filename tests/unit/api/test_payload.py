"""What is read of a JSON body that passes as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.api.payload import JsonBody
from app.api.terminal import Ending, grammar_of


def body(**fields: Any) -> JsonBody:
    """A body with these fields."""
    return JsonBody(None, fields)


@pytest.mark.parametrize(("fields", "expected"), [
    ({}, 1), ({"n": 3}, 3), ({"n_cmpl": 3}, 3), ({"n_cmpl": 2, "n": 3}, 2),
    ({"n_cmpl": None, "n": 3}, 3), ({"n": "3"}, 1), ({"n_cmpl": 0}, 1), ({"n": 2000}, 1)])
def test_how_many_answers_a_stream_holds(fields: dict[str, Any], expected: int) -> None:
    """llama-server's name for the number counts before OpenAI's, as it does there."""
    assert body(**fields).parts == expected


@pytest.mark.parametrize(("path", "end"), [
    ("/v1/chat/completions", {"choices": [{"index": 0, "finish_reason": "stop"}]}),
    ("/completion", {"index": 0, "content": "", "stop": True})])
def test_each_answer_has_an_end_of_its_own(path: str, end: dict[str, Any]) -> None:
    """A stream of two is not over when one of them is."""
    ending = Ending(grammar_of(path), body(n_cmpl=2).parts)
    for number, over in (0, False), (0, False), (1, True):
        event = json.dumps(end).replace('"index": 0', f'"index": {number}')
        ending.see(f"data: {event}\n\n".encode())
        assert ending.over is over
