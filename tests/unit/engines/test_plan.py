"""What the policy makes of managed engines at one moment, branch by branch."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from app.engines.plan import Plan, can_fit, plan
from app.engines.unit_facts import Rules, State, UnitFacts
from tests.fakes.unit_kinds import (
    GIB, busy, drained, idle, starting, stopped, stopping, wanted,
)

NOW = 100.0


def planned(units: list[UnitFacts], budget: float | None = 2) -> Plan:
    """The plan at NOW with a budget of so many GiB."""
    bound = None if budget is None else int(budget * GIB)
    return plan(units, NOW, Rules(bound, min_residency=5.0, max_wait=60.0))


def failed(key: str, not_before: float, **more: Any) -> UnitFacts:
    """Its last start failed; the next one has to wait."""
    return replace(wanted(key, 90.0, **more), state=State.FAILED, not_before=not_before)


def grown(unit: UnitFacts, size: float) -> UnitFacts:
    """The unit with so many GiB resident."""
    return replace(unit, resident=int(size * GIB))


def preload(key: str, size: float = 1) -> UnitFacts:
    """It is to be there from the beginning."""
    return stopped(key, size, preload=True)


REFUSE = [
    ("over the budget alone", [wanted("a", 1.0, 2.5)], Plan(refuse=["a"])),
    ("as large as the budget", [wanted("a", 1.0, 2)], Plan(start=["a"])),
    ("nobody wants it", [stopped("a", 2.5)], Plan()),
    ("beside a pinned one", [idle("p", 1.0, 1, pinned=True), wanted("a", 1.0, 1.5)],
     Plan(refuse=["a"])),
    ("beside a pinned one that is busy", [busy("p", 1.0, 1, pinned=True), wanted("a", 1.0, 1.5)],
     Plan(refuse=["a"])),
    ("a pinned one beside a pinned one",
     [idle("p", 1.0, 1.5, pinned=True), wanted("q", 1.0, pinned=True)], Plan(refuse=["q"])),
    ("the others start", [wanted("a", 1.0, 2.5), wanted("b", 2.0)],
     Plan(start=["b"], refuse=["a"])),
    ("one that is there serves", [busy("a", 1.0, 2.5)], Plan(look_at=400.0)),
    ("one that starts serves", [starting("a", 2.5)], Plan()),
    ("one that is stopping will not start again", [stopping("a", 2.5, waiting=1, wanted_since=1.0)],
     Plan(refuse=["a"])),
    ("one that is to be there from the beginning", [preload("a", 2.5)], Plan()),
]

IDLE = [
    ("for its keep-alive", [idle("a", 90.0, keep=10.0)], Plan(stop=["a"])),
    ("not for so long", [idle("a", 95.0, keep=10.0)], Plan(look_at=105.0)),
    ("the soonest counts", [idle("a", 95.0, keep=10.0), idle("b", 96.0, keep=7.0)],
     Plan(look_at=103.0)),
    ("keep-alive 0", [idle("a", NOW, keep=0.0, ready_since=99.0)], Plan(stop=["a"])),
    ("keep-alive 0 while a call runs", [busy("a", 1.0, keep=0.0)], Plan()),
    ("for ever", [idle("a", 1.0, keep=math.inf)], Plan()),
    ("pinned", [idle("a", 1.0, keep=10.0, pinned=True)], Plan()),
    ("looked at when it may have been idle for so long", [busy("a", 0.0, keep=10.0)],
     Plan(look_at=110.0)),
    ("starting", [starting("a", keep=0.0)], Plan()),
    ("stopping", [stopping("a", keep=0.0, unused_since=1.0)], Plan()),
    ("stopped", [stopped("a", keep=0.0, unused_since=1.0)], Plan()),
    ("for another one", [idle("a", 90.0, 2, keep=10.0), wanted("b", 1.0)], Plan(stop=["a"])),
]

OVER = [
    ("an idle one goes", [idle("a", 50.0), idle("b", 40.0, 2)], Plan(stop=["b"], look_at=340.0)),
    ("who is stopping is enough", [idle("a", 50.0, 2), stopping("b")], Plan(look_at=350.0)),
    ("who is idle for too long is enough", [idle("a", 50.0, 2), idle("b", 90.0, keep=10.0)],
     Plan(stop=["b"], look_at=350.0)),
    ("one that has grown", [grown(idle("a", 50.0), 1.1), idle("b", 60.0)],
     Plan(stop=["a"], look_at=350.0)),
    ("the pinned ones stay", [idle("p", 1.0, 2, pinned=True), idle("b", 60.0)],
     Plan(stop=["b"], look_at=360.0)),
    ("one that runs calls is held", [busy("a", 10.0), busy("b", 20.0, 2)],
     Plan(hold=["a"], look_at=400.0)),
    ("nobody while it fits", [idle("a", 50.0), grown(busy("b", 1.0), 1)], Plan(look_at=350.0)),
    ("beside what a wanted one needs",
     [idle("a", 40.0), idle("b", 50.0), idle("c", 60.0), wanted("d", 90.0, 1)],
     Plan(stop=["a", "b"], look_at=340.0)),
    ("room is made for what they take",
     [grown(idle("a", 40.0), 1.9), wanted("d", 90.0, 1)], Plan(stop=["a"], look_at=340.0)),
    ("a grown one comes again", [grown(stopping("a", 1, waiting=1, wanted_since=1.0), 3)], Plan()),
    ("beside a pinned one that has grown",
     [grown(idle("p", 1.0, pinned=True), 1.5), wanted("a", 1.0)], Plan(refuse=["a"])),
]

START = [
    ("a wanted one", [wanted("a", 1.0), stopped("b")], Plan(start=["a"])),
    ("all that fit", [wanted("a", 2.0), wanted("b", 1.0)], Plan(start=["b", "a"])),
    ("whose call waits longest", [wanted("a", 2.0, 2), wanted("b", 1.0, 2)], Plan(start=["b"])),
    ("at the same time by name", [wanted("b", 1.0, 2), wanted("a", 1.0, 2)], Plan(start=["a"])),
    ("in the place of none", [starting("a"), wanted("b", 1.0)], Plan(start=["b"])),
    ("not twice", [starting("a")], Plan()),
    ("not what is stopping", [stopping("a", waiting=1, wanted_since=1.0)], Plan()),
    ("after a failure", [failed("a", not_before=NOW)], Plan(start=["a"])),
    ("not in the pause after a failure", [failed("a", not_before=104.0)], Plan(look_at=104.0)),
    ("nor for its sake keeps memory", [failed("a", 104.0, size=2), wanted("b", 95.0, 2)],
     Plan(start=["b"], look_at=104.0)),
]

ROOM = [
    ("an idle one goes", [idle("a", 50.0, 2), wanted("b", 90.0)], Plan(stop=["a"], look_at=350.0)),
    ("until it is gone", [stopping("a", 2), wanted("b", 90.0)], Plan()),
    ("who is stopping is enough", [stopping("a"), idle("b", 50.0, keep=math.inf),
                                   wanted("c", 90.0)], Plan()),
    ("who is idle for too long is enough",
     [idle("a", 50.0, keep=1.0), idle("b", 40.0, keep=math.inf), wanted("c", 90.0)],
     Plan(stop=["a"])),
    ("its turn is over", [busy("a", 10.0, 2, load_time=20.0), wanted("b", 90.0)],
     Plan(hold=["a"], look_at=400.0)),
    ("its calls have ended", [drained("a", 10.0, 2, load_time=20.0), wanted("b", 90.0)],
     Plan(stop=["a"], look_at=400.0)),
    ("its turn lasts", [busy("a", 10.0, 2), wanted("b", 90.0)], Plan(look_at=120.0)),
    ("who starts has to be ready before", [starting("a", 2), wanted("b", 90.0)], Plan()),
    ("one idle engine for one", [idle("a", 50.0, keep=math.inf), busy("c", 40.0),
                                 wanted("b", 90.0), wanted("d", 91.0)],
     Plan(stop=["a"], look_at=111.0)),
    ("two idle engines for two", [idle("a", 50.0, keep=math.inf), idle("c", 40.0, keep=math.inf),
                                  wanted("b", 90.0), wanted("d", 91.0)], Plan(stop=["c", "a"])),
    ("who came later gets nobody's room",
     [stopping("a", 2), wanted("b", 90.0, 2), wanted("c", 91.0)], Plan()),
    ("nor what is free until the room is there",
     [stopping("a"), wanted("b", 90.0, 2), wanted("c", 91.0)], Plan()),
    ("what is left over is free", [stopping("a"), wanted("b", 90.0, 1.5), wanted("c", 91.0, 0.5)],
     Plan(start=["c"])),
    ("a small one need not wait for a large one's turn",
     [busy("a", 10.0, 1.5), wanted("b", 90.0, 1.5), wanted("c", 91.0, 0.5)],
     Plan(start=["c"], look_at=110.0)),
    ("not even while the other one starts",
     [starting("a", 1.5), wanted("b", 90.0, 1.5), wanted("c", 91.0, 0.5)], Plan(start=["c"])),
    ("but if it would be in its way",
     [busy("a", 10.0, 1.5), wanted("b", 90.0, 1.6), wanted("c", 91.0, 0.5)], Plan(look_at=110.0)),
]

PRELOAD = [
    ("at once", [preload("a"), preload("b")], Plan(start=["a", "b"])),
    ("as far as they fit", [preload("a"), preload("b", 1.5), preload("c")],
     Plan(start=["a", "c"])),
    ("wanted ones before", [preload("a", 2), wanted("b", 90.0)], Plan(start=["b"])),
    ("nobody goes for them", [preload("a", 2), idle("b", 1.0, keep=math.inf)], Plan()),
    ("not in the place of who is waited for",
     [preload("a"), stopping("b"), wanted("c", 90.0, 2)], Plan()),
    ("in time", [replace(preload("a"), not_before=105.0)], Plan(look_at=105.0)),
    ("called before they fit", [idle("b", 1.0, 2), replace(
        preload("a"), waiting=1, wanted_since=90.0)], Plan(stop=["b"], look_at=301.0)),
]
ALL = [(f"{number}. {row[0]}", *row[1:]) for number, table in enumerate(
    [REFUSE, IDLE, OVER, START, ROOM, PRELOAD], 1) for row in table]


@pytest.mark.parametrize(
    ("units", "expected"), [row[1:] for row in ALL], ids=[row[0] for row in ALL])
def test_the_plan(units: list[UnitFacts], expected: Plan) -> None:
    """The tables above, numbered as the branches are."""
    assert planned(units) == expected


def test_without_a_budget_everything_fits() -> None:
    """Nobody is refused, stopped or kept waiting for memory's sake."""
    units = [busy("a", 1.0, 900), wanted("b", 2.0, 900), wanted("c", 1.0, 900), preload("d", 900)]
    assert planned(units, None) == Plan(start=["c", "b", "d"], look_at=400.0)


@pytest.mark.parametrize(("size", "others", "expected"), [
    (2, [], True), (2.1, [], False), (1, [idle("p", 1.0, pinned=True)], True),
    (1.1, [idle("p", 1.0, pinned=True)], False), (2, [busy("b", 1.0)], True),
    (2, [stopped("p", pinned=True)], True), (2, [starting("p", pinned=True)], False)])
def test_what_can_ever_fit(size: float, others: list[UnitFacts], expected: bool) -> None:
    """Everything may be stopped but what is pinned and there."""
    unit = wanted("a", 1.0, size)
    assert can_fit(unit, [*others, unit], 2 * GIB) is expected
    assert can_fit(unit, [*others, unit], None)


def test_a_pinned_model_that_is_there_does_not_count_against_itself() -> None:
    """It is there already."""
    unit = busy("p", 1.0, 2, pinned=True)
    assert can_fit(unit, [unit], 2 * GIB)
