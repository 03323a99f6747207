"""keep_alive: numbers and Go durations, and what is no duration."""

from __future__ import annotations

import math
from typing import Any

import pytest

from app.api.ollama.request import keep_alive
from tests.unit.ollama.request_cases import refusal

READ: list[tuple[Any, float]] = [
    (0, 0.0),
    (-0.0, 0.0),
    (300, 300.0),
    (0.5, 0.5),
    (-1, math.inf),
    (-0.001, math.inf),
    (10**400, math.inf),
    (9_223_372_036, 9_223_372_036.0),
    (9_223_372_037, math.inf),
    ("0", 0.0),
    ("0s", 0.0),
    ("-0", 0.0),
    ("+5s", 5.0),
    ("5m", 300.0),
    ("1h30m", 5400.0),
    ("1h30m1.5s", 5401.5),
    ("3600s", 3600.0),
    ("1.5h", 5400.0),
    (".5s", 0.5),
    ("1.s", 1.0),
    ("250ms", 0.25),
    ("5us", 5e-6),
    ("5µs", 5e-6),
    ("5μs", 5e-6),
    ("5ns", 5e-9),
    ("-1m", math.inf),
    ("-1", math.inf),
    ("300", 300.0),
    ("1.5", 1.5),
    ("9" * 100, math.inf),
    ("9" * 99 + "h", math.inf),
]
REFUSED: list[tuple[Any, str]] = [
    ("", 'time: invalid duration ""'),
    ("-", 'time: invalid duration "-"'),
    (".", 'time: invalid duration "."'),
    ("m", 'time: invalid duration "m"'),
    (" 5m", 'time: invalid duration " 5m"'),
    ("--5m", 'time: invalid duration "--5m"'),
    ("٣s", 'time: invalid duration "٣s"'),
    ("forever", 'time: invalid duration "forever"'),
    ('5"', 'time: unknown unit "\\"" in duration "5\\""'),
    ("5d", 'time: unknown unit "d" in duration "5d"'),
    ("5 m", 'time: unknown unit " m" in duration "5 m"'),
    ("5M", 'time: unknown unit "M" in duration "5M"'),
    ("1h30", 'time: missing unit in duration "1h30"'),
    ("1" * 101, f'time: invalid duration "{"1" * 101}"'),
    ("1" * 10_000_000, f'time: invalid duration "{"1" * 200}…"'),
    (True, "Unsupported type: 'bool'"),
    ([], "Unsupported type: '[]interface {}'"),
    ({}, "Unsupported type: 'map[string]interface {}'"),
]


@pytest.mark.parametrize(("value", "seconds"), READ, ids=lambda value: repr(value)[:20])
def test_durations_are_read(value: Any, seconds: float) -> None:
    """Numbers and texts without a unit are seconds; below zero and over Go's range is for ever."""
    assert keep_alive.seconds(value) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(("value", "text"), REFUSED, ids=lambda value: repr(value)[:20])
def test_what_is_no_duration_is_refused(value: Any, text: str) -> None:
    """In Ollama's words, and however long the text is."""
    assert refusal(keep_alive.seconds, value) == text


@pytest.mark.parametrize(("fields", "seconds"), [
    ({}, None),
    ({"keep_alive": "1m"}, 60.0),
    ({"keep_alive": 0, "options": {"keep_alive": "1m"}}, 0.0),
    ({"options": {"keep_alive": "1m"}}, 60.0),
    ({"options": {"keep_alive": -1}}, math.inf),
    ({"options": {"keep_alive": None}}, None),
    ({"options": {"keep_alive": "default"}}, None),
    ({"options": {"keep_alive": True}}, None),
    ({"options": None}, None),
    ({"options": "wrong"}, None),
])
def test_it_is_found_among_the_options_too(
        fields: dict[str, Any], seconds: float | None) -> None:
    """The field itself comes first; among the options, what makes no sense is passed over."""
    assert keep_alive.of(fields) == seconds


def test_a_wrong_field_is_refused() -> None:
    """Options do not stand in for a field that is wrong."""
    fields = {"keep_alive": "soon", "options": {"keep_alive": "1m"}}
    assert refusal(keep_alive.of, fields) == 'time: invalid duration "soon"'
