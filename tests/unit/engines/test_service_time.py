"""How long calls take, and what that means for who has to wait; and whose turn was when."""

from __future__ import annotations

import pytest

from app.call import Priority
from app.engines.service_time import ServiceTime
from app.engines.turns import Turns


def noted(*seconds: float) -> ServiceTime:
    """The time of an engine whose calls took so long."""
    made = ServiceTime()
    for one in seconds:
        made.note(one)
    return made


@pytest.mark.parametrize(("seconds", "expected"), [
    ([], 1.0), ([4.0], 4.0), ([0.0], 0.0), ([4.0, 4.0], 4.0), ([5.0, 10.0], 6.0),
    ([10.0, 5.0, 5.0], 8.2)])
def test_the_mean_follows_what_calls_take(seconds: list[float], expected: float) -> None:
    """A fifth of the way with each call; the first one is all there is to know then."""
    assert noted(*seconds).mean == pytest.approx(expected)


def test_the_mean_forgets() -> None:
    """After some twenty calls it is about what they take now."""
    assert noted(100.0, *[1.0] * 20).mean == pytest.approx(2.14, abs=0.01)


@pytest.mark.parametrize(("seconds", "ahead", "slots", "expected"), [
    ([], 1, 1, 1.0), ([2.0], 1, 1, 2.0), ([2.0], 65, 4, 32.5), ([0.01], 1, 4, 0.0025),
    ([2.0], 0, 1, 0.0), ([120.0], 1000, 1, 3600.0), ([120.0], 1000, 100, 1200.0)])
def test_the_wait_is_that_of_all_ahead(
        seconds: list[float], ahead: int, slots: int, expected: float) -> None:
    """So many calls, so many at a time; nobody is sent away for more than an hour."""
    assert noted(*seconds).wait(ahead, slots) == pytest.approx(expected)


def test_turns_are_numbered() -> None:
    """The last one of each caller counts."""
    turns = Turns()
    for caller in "abac":
        turns.give(caller, Priority.LOW, 7.0)
    last = {caller: turn.number for caller, turn in turns.last.items()}
    assert (turns.given, last) == (4, {"a": 3, "b": 2, "c": 4})
    turns.give("a", Priority.NORMAL, 9.0)
    assert turns.last["a"].at == (9.0, 9.0, 7.0)


def test_callers_are_not_remembered_for_ever() -> None:
    """However many come, memory is bounded; those whose turn is longest ago are forgotten."""
    turns = Turns()
    for number in range(4000):
        if number % 1000 == 0:
            turns.give("regular", Priority.HIGH, 0.0)
        turns.give(f"caller {number}", Priority.HIGH, 0.0)
    assert turns.given == 4004
    assert len(turns.last) == 1024
    assert {"regular", "caller 3999", "caller 2977"} <= set(turns.last)
    assert "caller 2976" not in turns.last
