"""Which engines make room for another one: idle ones, then those whose turn is over."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from app.engines.eviction import Room, make_room, turn_length
from app.engines.unit_facts import Rules, UnitFacts
from tests.fakes.unit_kinds import (
    GIB, busy, drained, idle, starting, stopped, stopping, wanted,
)

RULES = Rules(budget=None, min_residency=5.0, max_wait=60.0)
NOW = 100.0
X = wanted("x", 90.0)  # for whom the room is; with one busy engine two models share 60 s
Table = Sequence[tuple[str, float, list[UnitFacts], Room]]


def enough(stop: Sequence[str] = (), hold: Sequence[str] = ()) -> Room:
    """Room that these make."""
    return Room(True, tuple(stop), tuple(hold))


def too_little(look_at: float | None = None, awaited: Sequence[str] = ()) -> Room:
    """No room yet."""
    return Room(False, look_at=look_at, awaited=tuple(awaited))


IDLE: Table = [
    ("nothing needed", 0, [idle("a", 50.0)], enough()),
    ("less than nothing needed", -1, [idle("a", 50.0)], enough()),
    ("the only one", 1, [idle("a", 50.0)], enough("a")),
    ("a part of it is needed", 0.5, [idle("a", 50.0)], enough("a")),
    ("the least recently used", 1, [idle("a", 50.0), idle("b", 40.0), idle("c", 60.0)],
     enough("b")),
    ("when it became ready makes no difference", 1,
     [idle("a", 50.0, ready_since=10.0), idle("b", 40.0, ready_since=30.0)], enough("b")),
    ("as many as are needed", 2, [idle("a", 50.0), idle("b", 40.0), idle("c", 60.0)],
     enough(["b", "a"])),
    ("a large one does for two", 2, [idle("a", 50.0, 2), idle("b", 60.0)], enough("a")),
    ("same time, by name", 1, [idle("b", 50.0), idle("a", 50.0)], enough("a")),
    ("even with load on another", 1, [busy("a", 0.0), idle("b", 99.0)], enough("b")),
]

RESIDENT: Table = [
    ("ready for just long enough", 1, [idle("a", 96.0, ready_since=95.0)], enough("a")),
    ("not long enough", 1, [idle("a", 96.0, ready_since=96.0)], too_little(101.0, "a")),
    ("just long enough is long enough", 1,
     [idle("a", 96.0, ready_since=95.0), idle("b", 99.0, ready_since=20.0)], enough("a")),
    ("who may go already is not looked at again", 2,
     [idle("a", 96.0, ready_since=95.0), idle("b", 99.0, ready_since=98.0)],
     too_little(103.0, ["a", "b"])),
    ("another one is there for longer, but was used later", 1,
     [idle("a", 96.5, ready_since=96.0), idle("b", 99.0, ready_since=20.0)],
     too_little(101.0, "a")),
    ("the next one is in time", 2,
     [idle("a", 97.0, ready_since=97.0), idle("b", 50.0), idle("c", 96.0, ready_since=96.0)],
     too_little(101.0, ["b", "c"])),
    ("a busy one", 1, [busy("a", 98.0)], too_little(128.0, "a")),
]

TURNS: Table = [  # 60 s for two models: 30 s each, from when the other one was wanted
    ("it lasts", 1, [busy("a", 0.0)], too_little(120.0, "a")),
    ("it is over", 1, [busy("a", 70.0, load_time=20.0)], enough(hold="a")),
    ("it lasts with less to load", 1, [busy("a", 70.0, load_time=19.0)], too_little(101.0, "a")),
    ("it is over and nobody is left", 1, [drained("a", 70.0, load_time=20.0)], enough("a")),
    ("it began after the other was wanted", 1, [busy("a", 95.0, load_time=20.0)],
     too_little(105.0, "a")),
    ("three models: 20 s less the loading", 1,
     [busy("a", 50.0, load_time=10.0), busy("b", 40.0, load_time=8.0)], enough(hold="b")),
    ("who began first", 2,
     [busy("a", 50.0, load_time=10.0), busy("b", 40.0), drained("c", 45.0, load_time=10.0)],
     enough("c", "b")),
    ("idle ones before", 2,
     [busy("a", 10.0, load_time=20.0), idle("b", 99.0), idle("c", 98.0)], enough(["c", "b"])),
    ("idle ones and one whose turn is over", 2,
     [busy("a", 10.0, load_time=20.0), idle("b", 99.0)], enough("b", "a")),
    ("an idle one is not stopped in vain", 2, [busy("a", 10.0), idle("b", 99.0)],
     too_little(120.0, ["b", "a"])),
    ("whose turn ends first is awaited", 1,
     [busy("a", 99.0), busy("b", 94.0), busy("c", 96.0)], too_little(109.0, "b")),
    ("a turn is no shorter than the residency", 1,
     [busy("a", 86.0, load_time=29.0)], enough(hold="a")),
    ("nor than the residency, from when another is wanted", 1,
     [busy("a", 94.0, load_time=29.0)], enough(hold="a")),
    ("one call more does not lengthen it", 1,
     [busy("a", 70.0, load_time=20.0, held=7, waiting=20)], enough(hold="a")),
]

NEVER: Table = [
    ("nobody there", 1, [], too_little()),
    ("pinned", 1, [idle("a", 1.0, pinned=True)], too_little()),
    ("pinned and busy", 1, [busy("a", 1.0, pinned=True, load_time=30.0)], too_little()),
    ("starting: once it is ready", 1, [starting("a")], too_little(None, "a")),
    ("stopping", 1, [stopping("a")], too_little()),
    ("stopped", 1, [stopped("a"), wanted("b", 1.0)], too_little()),
    ("not enough by far", 9, [idle("a", 1.0), idle("b", 2.0)], too_little(None, ["a", "b"])),
    ("taken already", 1, [idle("taken", 1.0), idle("b", 2.0)], enough("b")),
    ("only what is taken", 1, [idle("taken", 1.0), busy("held", 1.0, load_time=30.0)],
     too_little()),
    ("who is ready is awaited before who starts", 2, [starting("a"), busy("b", 1.0)],
     too_little(110.0, ["b", "a"])),
]


@pytest.mark.parametrize(
    ("needed", "units", "expected"), [row[1:] for row in [*IDLE, *RESIDENT, *TURNS, *NEVER]],
    ids=[row[0] for row in [*IDLE, *RESIDENT, *TURNS, *NEVER]])
def test_who_goes(needed: float, units: list[UnitFacts], expected: Room) -> None:
    """The tables above: who is stopped, who is held, and when to look again if nobody is."""
    found = make_room(
        int(needed * GIB), 90.0, [X, *units], NOW, RULES, taken=("taken", "held"))
    assert found == expected


@pytest.mark.parametrize(("units", "expected"), [
    ([], 60.0),
    ([busy("a")], 60.0),
    ([busy("a"), X], 30.0),
    ([busy("a"), X, wanted("y", 1.0)], 20.0),
    ([busy("a"), X, wanted("y", 1.0), idle("b", 1.0), stopped("c"), stopping("d")], 20.0),
    ([busy("a", load_time=2.0), wanted("x", 90.0, load_time=4.0)], 26.0),
    ([busy("a"), X, idle("b", 1.0, load_time=9.0)], 30.0),
    ([busy("a"), X, busy("pinned", pinned=True, load_time=9.0)], 30.0),
    ([busy("a"), X, starting("b"), drained("c")], 15.0),
    ([busy("a", waiting=0), drained("b")], 30.0),
    ([busy("a", load_time=40.0), X], 5.0),
    ([wanted(str(number), 1.0) for number in range(60)], 5.0),
])
def test_a_turn_is_a_share_of_the_longest_wait(
        units: list[UnitFacts], expected: float) -> None:
    """Divided by the models that want the memory, less the loading, not under the residency."""
    assert turn_length(units, RULES) == expected


def test_who_is_held_may_go_on_if_fewer_models_want_the_memory() -> None:
    """The turn is as long as it is by now; nobody remembers how long it was."""
    held, third = drained("a", 70.0, load_time=2.0), wanted("y", 95.0)
    short = make_room(GIB, 75.0, [held, X, third], NOW, RULES)
    long = make_room(GIB, 75.0, [held, X], NOW, RULES)
    assert (short, long) == (enough("a"), too_little(103.0, "a"))
