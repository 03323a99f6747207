"""The slots of an engine: how many calls have one, who is next, and who waits in vain."""

from __future__ import annotations

import threading

import pytest

from app.call import Priority
from app.engines.admission import Admission, Full, Gate, QueueRules
from app.engines.hangup import Departure
from app.errors import Kind
from tests.fakes.visits import Client, HandClock, Visits, question, work

RULES = QueueRules(size=64, max_wait=60.0)
HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_no_more_calls_than_slots(visits: Visits, slots: int) -> None:
    """The rest waits, and each that ends lets one of them in."""
    admission = Admission(RULES, slots)
    for _ in range(3 * slots):
        visits.enter(admission)
    for left in range(3 * slots, 0, -1):
        demand = admission.demand()
        assert (demand.running, demand.held) == (min(left, slots), min(left, slots))
        assert (admission.running, demand.waiting) == (demand.running, max(0, left - slots))
        visits.next_inside().leave()
    assert admission.demand().running == 0


def test_slots_hold_under_load() -> None:
    """Many threads at once: never more than the slots are inside, and all get in."""
    admission, lock = Admission(QueueRules(1000, 60.0), 3), threading.Lock()
    inside, most, done = 0, 0, 0

    def come_and_go(caller: str) -> None:
        nonlocal inside, most, done
        for _ in range(100):
            with admission.entered(work(caller=caller), Departure(None)):
                with lock:
                    inside, most = inside + 1, max(most, inside + 1)
                with lock:
                    inside, done = inside - 1, done + 1

    threads = [threading.Thread(target=come_and_go, args=(str(n),), daemon=True) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20.0)
    assert (inside, done, admission.running) == (0, 800, 0)
    assert 1 <= most <= 3


def test_without_a_bound_nobody_waits(visits: Visits) -> None:
    """An engine of which nothing is known gets all calls."""
    admission = Admission(QueueRules(0, 60.0), None)
    assert all(visits.enter(admission).inside for _ in range(20))
    assert (admission.running, admission.slots, admission.has_free_slot) == (20, None, True)


ORDERS = [
    ("first come, first served", "a1 a2 a3 a4", "a1 a2 a3 a4"),
    ("callers take turns", "a1 a2 a3 b1 b2 c1", "b1 c1 a1 b2 a2 a3"),
    ("one call among many", "a1 a2 a3 a4 a5 a6 b1", "b1 a1 a2 a3 a4 a5 a6"),
    ("urgent ones first", "al1 an1 ah1 bl1 bn1 bh1", "bh1 ah1 bn1 an1 bl1 al1"),
]


@pytest.mark.parametrize(("calls", "expected"), [row[1:] for row in ORDERS],
                         ids=[row[0] for row in ORDERS])
def test_who_is_next(visits: Visits, calls: str, expected: str) -> None:
    """Of calls named by caller, priority and number; one of caller a runs."""
    admission = Admission(RULES, 1)
    visits.enter(admission, work(caller="a"))
    names = {}
    for name in calls.split():
        priority = {"h": HIGH, "l": LOW}.get(name[1], NORMAL)
        names[visits.enter(admission, work(caller=name[0], priority=priority))] = name
    visits.next_inside().leave()
    order = []
    for _ in names:
        visit = visits.next_inside()
        order.append(names[visit])
        visit.leave()
    assert order == expected.split()


@pytest.mark.parametrize(("seconds", "expected"), [
    (14.9, ["high", "normal", "low"]), (15.0, ["high", "low", "normal"]),
    (29.9, ["high", "low", "normal"]), (30.0, ["low", "high", "normal"])])
def test_a_call_gets_more_urgent_as_it_waits(
        visits: Visits, clock: HandClock, seconds: float, expected: list[str]) -> None:
    """LOW is as urgent as NORMAL after a quarter of the longest wait, as HIGH after half of it."""
    admission = Admission(RULES, 1, clock=clock)
    first = visits.enter(admission)
    calls = {"low": visits.enter(admission, work(priority=LOW))}
    clock.now += seconds
    for priority in (NORMAL, HIGH):
        calls[priority.name.lower()] = visits.enter(admission, work(priority=priority))
    first.leave()
    for name in expected:
        calls[name].leave()


@pytest.mark.parametrize(("slots", "size", "inside"), [(1, 0, 1), (2, 0, 2), (1, 2, 1), (3, 2, 3)])
def test_a_full_queue_takes_no_more(
        visits: Visits, slots: int, size: int, inside: int) -> None:
    """Behind the slots as many wait as may; one more is told when to come again."""
    admission = Admission(QueueRules(size, 60.0), slots)
    entered = [visits.enter(admission) for _ in range(slots + size)]
    assert [visit.inside for visit in entered] == [True] * inside + [False] * size
    error = visits.enter(admission).expect_error()
    assert isinstance(error, Full) and error.kind is Kind.QUEUE_FULL
    assert error.message == "the queue of the model's engine is full"
    assert error.wait == (size + 1) / slots
    assert admission.demand().waiting == size
    entered[0].leave()
    assert not visits.enter(admission).error


@pytest.mark.parametrize("gate", [Gate.SHUT, Gate.LOADING])
def test_the_queue_of_an_engine_that_is_not_there(visits: Visits, gate: Gate) -> None:
    """Who will get a slot at once counts as if it had it."""
    admission = Admission(QueueRules(1, 60.0), 2, gate)
    assert [visits.enter(admission).error for _ in range(3)] == [None] * 3
    assert isinstance(visits.enter(admission).expect_error(), Full)


def test_when_to_come_again(visits: Visits, clock: HandClock) -> None:
    """The measured time of a call, for all that wait and the one that asks, by the slots."""
    admission = Admission(QueueRules(3, 60.0), 2, clock=clock)
    running = [visits.enter(admission), visits.enter(admission)]
    clock.now += 8.0
    running[0].leave()
    for _ in range(4):
        visits.enter(admission)
    assert visits.enter(admission).expect_error().wait == 8.0 * 4 / 2


def test_a_small_question_is_no_measure(visits: Visits, clock: HandClock) -> None:
    """Only work tells how long work takes."""
    admission = Admission(QueueRules(0, 60.0), 1, clock=clock)
    asked = visits.enter(admission, question())
    clock.now += 9.0
    asked.leave()
    assert admission.service.mean == 1.0


def test_a_small_question_needs_no_slot(visits: Visits) -> None:
    """It passes all who wait, also where the queue is full, and takes nobody's slot."""
    admission = Admission(QueueRules(1, 60.0), 1)
    running, waiting = visits.enter(admission), visits.enter(admission)
    asked = visits.enter(admission, question())
    assert asked.inside and not waiting.inside
    demand = admission.demand()
    assert (demand.running, demand.held, demand.waiting) == (1, 2, 1)
    running.leave()
    waiting.expect_inside()
    asked.leave()
    assert admission.demand().held == 1


def test_too_long_a_wait(visits: Visits, clock: HandClock) -> None:
    """Is an error that says when another try makes sense; its place is free then."""
    admission = Admission(QueueRules(1, 60.0), 1, clock=clock)
    running = visits.enter(admission)

    def pass_time(_: Client) -> None:
        clock.now += 60.0

    error = visits.enter(admission, on_wait=pass_time).expect_error()
    assert error.kind is Kind.QUEUE_FULL and not isinstance(error, Full)
    assert error.message == "the call waited 60 s for the model's engine without a turn"
    assert error.wait == 1.0
    assert admission.demand().waiting == 0
    running.leave()
    assert visits.enter(admission).inside


def test_when_to_come_again_where_slots_have_no_bound(visits: Visits, clock: HandClock) -> None:
    """All that wait will be served at the same time, so the time of one call is enough."""
    admission = Admission(RULES, None, Gate.SHUT, clock=clock)
    for _ in range(3):
        visits.enter(admission)

    def pass_time(_: Client) -> None:
        clock.now += 60.0

    assert visits.enter(admission, on_wait=pass_time).expect_error().wait == 1.0


def test_who_waits_sleeps(visits: Visits, clock: HandClock) -> None:
    """Until something happens to its call; a start that is over is one such thing, once."""
    admission = Admission(RULES, 1, Gate.LOADING, clock=clock)
    for _ in range(3):
        visits.enter(admission)
    admission.move(Gate.OPEN)
    visits.next_inside()
    before = clock.asked
    for _ in range(50):
        visits.enter(admission, question()).leave()
    assert clock.asked - before < 50 * 6


def test_the_wait_ends_by_itself(visits: Visits) -> None:
    """Nobody has to do anything for it."""
    admission = Admission(QueueRules(1, 0.05), 1)
    visits.enter(admission)
    waiting = visits.enter(admission)
    assert waiting.expect_error().kind is Kind.QUEUE_FULL
    assert 0.05 <= waiting.call.record.queue < 20.0


def test_a_client_that_leaves_while_it_waits(visits: Visits) -> None:
    """Its call is never served, and its place is the next one's."""
    admission = Admission(QueueRules(1, 60.0), 1)
    running, gone = visits.enter(admission), visits.enter(admission)
    assert gone.client.attached and gone.depart().kind is Kind.CLIENT_GONE
    assert not gone.client.attached
    waiting = visits.enter(admission)
    assert not waiting.error
    running.leave()
    waiting.expect_inside()
    assert not gone.inside


def test_a_client_that_left_as_its_call_began_to_wait(visits: Visits) -> None:
    """Is noticed at once, too."""
    admission = Admission(RULES, 1)
    visits.enter(admission)
    gone = visits.enter(admission, on_wait=lambda client: client.happen())
    assert gone.expect_error().kind is Kind.CLIENT_GONE
    assert admission.demand().waiting == 0
