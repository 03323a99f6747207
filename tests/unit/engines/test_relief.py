"""Which engines go where those that run take more than the budget, as it or they have changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.engines.eviction import Room, relief
from app.engines.unit_facts import Rules, UnitFacts
from tests.fakes.unit_kinds import (
    GIB, busy, drained, idle, starting, stopped, stopping, wanted,
)

RULES = Rules(budget=3 * GIB, min_residency=5.0, max_wait=60.0)
NOW = 100.0
Table = Sequence[tuple[str, float, list[UnitFacts], Room]]


def enough(stop: Sequence[str] = (), hold: Sequence[str] = ()) -> Room:
    """These bring what is in use into the budget."""
    return Room(True, tuple(stop), tuple(hold))


def some(stop: Sequence[str] = (), hold: Sequence[str] = (), look_at: float | None = None) -> Room:
    """These do not, but they go at once."""
    return Room(False, tuple(stop), tuple(hold), look_at)


def grown(unit: UnitFacts, size: float) -> UnitFacts:
    """The unit with so many GiB resident."""
    return replace(unit, resident=int(size * GIB))


IDLE: Table = [
    ("the least recently used", 1, [idle("a", 50.0), idle("b", 40.0)], enough("b")),
    ("as many as are needed", 1.5, [idle("a", 50.0), idle("b", 40.0), idle("c", 60.0)],
     enough(["b", "a"])),
    ("what has grown gives what it takes", 2, [grown(idle("a", 40.0), 2), idle("b", 50.0)],
     enough("a")),
    ("what has shrunk gives what is counted", 1, [grown(idle("a", 40.0), 0.1), idle("b", 50.0)],
     enough("a")),
    ("all, where that is too little", 9, [idle("a", 50.0), idle("b", 40.0)], some(["b", "a"])),
    ("one that alone is over the budget", 1, [idle("a", 50.0, 4)], enough("a")),
    ("one that has just come is waited for", 1,
     [idle("a", 97.0, ready_since=97.0), idle("b", 99.0)], some(look_at=102.0)),
    ("beside who can go", 2, [idle("a", 50.0), idle("b", 97.0, ready_since=97.0)],
     some("a", look_at=102.0)),
    ("even with load on another", 1, [busy("a", 0.0), idle("b", 99.0)], enough("b")),
]

BUSY: Table = [  # each has a turn of 60 s from when it became ready
    ("its turn is over", 1, [busy("a", 40.0)], enough(hold="a")),
    ("its turn lasts", 1, [busy("a", 41.0)], some(look_at=101.0)),
    ("its calls have ended", 1, [drained("a", 40.0)], enough("a")),
    ("the one that began first", 1, [busy("a", 60.0), busy("b", 50.0)], enough(hold="b")),
    ("after the idle ones", 2, [busy("a", 40.0), idle("b", 99.0)], enough("b", "a")),
    ("not one that alone is over the budget", 1, [busy("a", 0.0, 4)], some()),
    ("but one beside it", 2, [grown(busy("a", 0.0), 4), busy("b", 1.0)], some(hold="b")),
]

NEVER: Table = [
    ("nobody there", 1, [], some()),
    ("pinned", 1, [idle("a", 1.0, pinned=True), busy("b", 1.0, pinned=True)], some()),
    ("starting", 1, [starting("a")], some()),
    ("who has no process, or is ending", 1, [stopped("a"), wanted("b", 1.0), stopping("c")],
     some()),
    ("taken already", 1, [idle("taken", 1.0), idle("b", 2.0)], enough("b")),
]
ALL = [*IDLE, *BUSY, *NEVER]


@pytest.mark.parametrize(
    ("surplus", "units", "expected"), [row[1:] for row in ALL], ids=[row[0] for row in ALL])
def test_who_goes(surplus: float, units: list[UnitFacts], expected: Room) -> None:
    """The tables above: who is stopped at once, who is held, and when to look again."""
    assert relief(int(surplus * GIB), units, NOW, RULES, taken=("taken",)) == expected
