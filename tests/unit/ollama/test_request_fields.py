"""Readers of single fields: what counts as which type, and texts that no UTF-8 can hold."""

from __future__ import annotations

from typing import Any

import pytest

from app import jsontext
from app.api.ollama.request.fields import mended, whole
from tests.unit.ollama.request_cases import refusal


@pytest.mark.parametrize(("value", "number"), [
    (None, 0), (0, 0), (7, 7), (-3, -3), (5.0, 5), (-0.0, 0), (2**70, 2**70)])
def test_a_whole_number(value: Any, number: int) -> None:
    """JSON does not tell 5 from 5.0; null is as good as absent."""
    assert whole(value, "n") == number


@pytest.mark.parametrize("value", [1.5, 1e-9, -0.5, True, False, "1", "", [], {}], ids=repr)
def test_anything_else_is_no_whole_number(value: Any) -> None:
    """Nothing is rounded."""
    assert refusal(whole, value, "n") == "n must be a whole number"


@pytest.mark.parametrize(("raw", "text"), [
    (rb'"plain"', "plain"), (rb'"a\ud800b"', "a\ufffdb"), (rb'"\udfff"', "\ufffd"),
    (rb'"\ud83d\ude00\ude00"', "\U0001f600\ufffd"), (rb'"\ud800\ud800"', "\ufffd\ufffd"),
    (rb'"\\ud800"', r"\ud800"), (rb'"\ude00\ud83d"', "\ufffd\ufffd"),
])
def test_half_a_pair_is_replaced(raw: bytes, text: str) -> None:
    """Each half by one character, as Go's decoder does; whole pairs stay."""
    assert mended(jsontext.decode(raw)) == text


def test_halves_are_found_wherever_they_are() -> None:
    """In keys too, at any depth that a request may have."""
    raw = rb'{"\ud800":[{"a":["\udc00",1,null,true,1.5]}]}'
    assert mended(jsontext.decode(raw)) == {"\ufffd": [{"a": ["\ufffd", 1, None, True, 1.5]}]}
    deep = jsontext.decode(b"[" * jsontext.MAX_DEPTH + b"]" * jsontext.MAX_DEPTH)
    assert mended(deep) == deep
