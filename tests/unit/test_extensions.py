"""Juno's fields leave a body, and what they say stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.api.extensions import NONE, Extensions, extended, taken_out
from app.api.openai.request import one_limit
from app.api.payload import JsonBody
from app.call import Priority

ALL = {"x_juno_priority": "HIGH", "x_juno_session_id": "s", "x_juno_top_k": 5}
NULLS = dict.fromkeys(ALL)


@pytest.mark.parametrize(("fields", "kept", "found"), [
    ({"a": 1, "x_juno_priority": "HIGH", "b": 2}, {"a": 1, "b": 2}, Extensions(Priority.HIGH)),
    ({"x_juno_priority": "LOW"}, {}, Extensions(Priority.LOW)),
    ({"x_juno_priority": "NORMAL"}, {}, NONE),
    ({"x_juno_session_id": " s "}, {}, Extensions(session=" s ")),
    ({"x_juno_top_k": 0}, {"top_k": 0}, Extensions(top_k=0)),
    ({"x_juno_top_k": 7, "top_k": None}, {"top_k": 7}, Extensions(top_k=7)),
    ({"x_juno_top_k": 7, "top_k": 3}, {"top_k": 3}, Extensions(top_k=7)),
    ({"x_juno_top_k": 7, "top_k": 0}, {"top_k": 0}, Extensions(top_k=7)),
    ({**NULLS, "a": 1}, {"a": 1}, NONE),
    ({**NULLS, "top_k": None}, {"top_k": None}, NONE),
    ({**ALL, "top_k": 3}, {"top_k": 3}, Extensions(Priority.HIGH, "s", 5)),
])
def test_the_three_are_taken_out(
        fields: dict[str, Any], kept: dict[str, Any], found: Extensions) -> None:
    """What is left keeps its order; ``top_k`` is Juno's only where the body has none of its own."""
    before = dict(fields)
    assert extended(fields)
    assert taken_out(fields) == (kept, found)
    assert list(taken_out(fields)[0]) == list(kept)
    assert fields == before


@pytest.mark.parametrize("fields", [
    {}, {"model": "m"}, {"x_juno": 1}, {"X_JUNO_PRIORITY": 1}, {"x_juno_top_k ": 1},
    {"messages": [ALL]}])
def test_no_other_field_is_one_of_them(fields: dict[str, Any]) -> None:
    """Neither a name that resembles theirs, nor theirs further down."""
    assert not extended(fields)


def test_a_body_is_serialised_when_it_is_wanted() -> None:
    """However often it is changed, and once only."""
    body = JsonBody(None, {"n": 2, "model": "a"}).for_model("b").with_field("x", "é")
    assert body.raw == '{"n":2,"model":"b","x":"é"}'.encode()
    assert body.raw is body.raw


def test_a_body_that_stays_keeps_its_bytes() -> None:
    """The same object, so the same bytes."""
    body = JsonBody(b'{ "model":"a"}', {"model": "a"})
    assert body.for_model("a") is body and body.raw == b'{ "model":"a"}'


def test_a_changed_body_still_knows_what_stood_beside_it() -> None:
    """An alias takes nothing of what the gateway was asked for."""
    found = Extensions(Priority.LOW, "s")
    body = JsonBody(None, {"model": "a", "n": 3}, found).for_model("b")
    assert body.facts == {"choices": {"n": 3}, "priority": Priority.LOW, "session": "s"}


@pytest.mark.parametrize(("n", "parts"), [
    (None, 1), (1, 1), (2, 2), (1024, 1024), (1025, 1), (0, 1), (-1, 1), ("many", 1), (2.0, 1)])
def test_the_number_of_choices_is_told_as_it_is(n: Any, parts: int) -> None:
    """Who checks it wants to see what the client wrote; a stream has so many ends at least."""
    body = JsonBody(b"", {"n": n})
    assert body.facts["choices"] == ({} if n is None else {"n": n}) and body.parts == parts


@pytest.mark.parametrize(("older", "newer", "sent"), [
    (5, 9, 9), (9, 5, 5), (5, 5.0, 5), (5, None, 5), (None, 9, None), (5, 9.0, 9.0)])
def test_the_newer_limit_wins(older: Any, newer: Any, sent: Any) -> None:
    """Where there are two that differ; otherwise the bytes stay."""
    fields = {"max_tokens": older, "max_completion_tokens": newer, "a": 1}
    body = JsonBody(b"x", fields)
    found = one_limit(body)
    assert found.fields == {**fields, "max_tokens": sent}
    if older == sent:
        assert found is body
    else:
        assert json.loads(found.raw) == found.fields and list(found.fields) == list(fields)


@pytest.mark.parametrize("fields", [{"max_tokens": 5}, {"max_completion_tokens": 5}, {}])
def test_one_limit_alone_stays(fields: dict[str, Any]) -> None:
    """An engine is not told a name that the client did not use."""
    body = JsonBody(b"x", fields)
    assert one_limit(body) is body
