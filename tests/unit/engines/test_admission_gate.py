"""What a call has to do with its engine's state: who may pass, and what time counts."""

from __future__ import annotations

import pytest

from app.call import Call
from app.engines.admission import Admission, Gate, QueueRules
from app.errors import GatewayError, Kind
from tests.fakes.visits import Client, HandClock, Visit, Visits, question, work

RULES = QueueRules(size=64, max_wait=60.0)
OPEN, HELD, SHUT = Gate.OPEN, Gate.HELD, Gate.SHUT
PAUSED, LOADING = Gate.PAUSED, Gate.LOADING
DIED = GatewayError(Kind.ENGINE_NOT_READY, "it ended with status 1", wait=4.0)


def times(visit: Visit) -> tuple[float, float]:
    """What its record says: seconds in the queue, seconds of loading."""
    return visit.call.record.queue, visit.call.record.load


@pytest.mark.parametrize(("gate", "running", "call", "passes"), [
    (OPEN, False, work(), True), (OPEN, False, question(), True),
    (OPEN, True, work(), True), (OPEN, True, question(), True),
    (HELD, False, work(), False), (HELD, False, question(), False),
    (HELD, True, work(), False), (HELD, True, question(), True),
    (SHUT, False, work(), False), (SHUT, False, question(), False),
    (LOADING, False, work(), False), (LOADING, False, question(), False),
    (SHUT, True, question(), False), (LOADING, True, question(), False),
    (PAUSED, False, work(), False), (PAUSED, True, question(), False),
])
def test_who_may_pass(
        visits: Visits, gate: Gate, running: bool, call: Call, passes: bool) -> None:
    """A held engine answers the small questions of the answers that still run, nothing else.

    One that crashed answers none, though the calls it had may not have ended yet.
    """
    admission = Admission(RULES, 4)
    if running:
        visits.enter(admission)
    admission.move(gate)
    visit = visits.enter(admission, call)
    assert (visit.inside, admission.demand().waiting) == (passes, not passes)
    admission.move(OPEN)
    visit.expect_inside()


def test_small_questions_do_not_hold_an_engine(visits: Visits) -> None:
    """One that runs lets no other one pass, or an engine that is held might never be free."""
    admission = Admission(RULES, 4)
    first = visits.enter(admission, question())
    admission.move(HELD)
    second = visits.enter(admission, question())
    assert not second.inside
    first.leave()
    assert admission.shut_if_unused()
    assert not second.inside


def test_waiting_calls_keep_their_place(visits: Visits) -> None:
    """Through another model's turn and the next start, however long that takes."""
    admission = Admission(RULES, 1)
    running = visits.enter(admission)
    waiting = [visits.enter(admission) for _ in range(3)]
    admission.move(HELD)
    running.leave()
    assert admission.demand().waiting == 3
    assert admission.shut_if_unused()
    late = visits.enter(admission)
    admission.move(LOADING)
    admission.move(OPEN)
    assert visits.next_inside() is running
    for visit in [*waiting, late]:
        assert visits.next_inside() is visit
        visit.leave()


def test_loading_is_told_apart_from_queueing(visits: Visits, clock: HandClock) -> None:
    """What a call spends while its engine starts is loading, all the rest is the queue."""
    admission = Admission(RULES, 1, SHUT, clock=clock)
    first = visits.enter(admission)
    clock.now += 3.0
    admission.move(LOADING)
    clock.now += 1.0
    second = visits.enter(admission)
    clock.now += 4.0
    admission.move(OPEN)
    first.expect_inside()
    third = visits.enter(admission)
    clock.now += 2.0
    first.leave()
    second.leave()
    third.leave()
    assert [times(visit) for visit in (first, second, third)] == [
        (3.0, 5.0), (2.0, 4.0), (2.0, 0.0)]


def test_a_call_that_waits_for_nothing_has_no_times(visits: Visits, clock: HandClock) -> None:
    """Nothing is added to what the request has spent before."""
    call = work()
    call.record.queue, call.record.load = 1.0, 2.0
    visit = visits.enter(Admission(RULES, 1, clock=clock), call)
    clock.now += 9.0
    visit.leave()
    assert times(visit) == (1.0, 2.0)


def test_times_add_up_over_the_calls_of_a_request(visits: Visits, clock: HandClock) -> None:
    """One request may ask several things of engines."""
    admission, call = Admission(RULES, 1, LOADING, clock=clock), work()
    for expected in ((0.0, 2.0), (0.0, 4.0)):
        visit = visits.enter(admission, call)
        clock.now += 2.0
        admission.move(OPEN)
        visit.leave()
        assert times(visit) == expected
        admission.move(LOADING)


def test_every_start_counts_once(visits: Visits, clock: HandClock) -> None:
    """Also where one fails, the next has to wait, and somebody says twice that it loads.

    The pause after a failure is part of it.
    """
    admission = Admission(RULES, 1, SHUT, clock=clock)
    visit = visits.enter(admission)
    for gate, seconds in [(LOADING, 2.0), (LOADING, 3.0), (SHUT, 7.0), (LOADING, 4.0), (SHUT, 1.0),
                          (SHUT, 0.5), (LOADING, 1.0), (HELD, 0.25), (SHUT, 0.5), (PAUSED, 2.0),
                          (LOADING, 1.0), (PAUSED, 4.0), (SHUT, 0.25)]:
        admission.move(gate)
        clock.now += seconds
    admission.move(OPEN)
    visit.leave()
    assert times(visit) == (9.5, 17.0)


@pytest.mark.parametrize("arrives", [SHUT, LOADING])
def test_a_start_does_not_count_as_waiting(
        visits: Visits, clock: HandClock, arrives: Gate) -> None:
    """However long it takes, no call has waited too long because of it."""
    admission = Admission(RULES, 1, arrives, clock=clock)

    def load_for_long(_: Client) -> None:
        admission.move(LOADING)
        clock.now += 1000.0

    visit = visits.enter(admission, on_wait=load_for_long)
    behind = visits.enter(admission)
    clock.now += 1000.0
    admission.move(OPEN)
    visit.expect_inside()
    assert not behind.error
    visit.leave()
    behind.leave()


def test_a_wait_that_was_too_long_before_a_start_that_fails(
        visits: Visits, clock: HandClock) -> None:
    """Ends when the start has, though nothing else wakes the call."""
    admission = Admission(RULES, 1, SHUT, clock=clock)
    visit = visits.enter(admission)
    clock.now += 61.0
    admission.move(LOADING)
    clock.now += 5.0
    admission.move(SHUT)
    assert visit.expect_error().kind is Kind.QUEUE_FULL
    assert times(visit) == (61.0, 5.0)


@pytest.mark.parametrize("gate", [SHUT, LOADING, PAUSED, HELD, OPEN])
def test_all_that_wait_are_answered(visits: Visits, clock: HandClock, gate: Gate) -> None:
    """Each with an error of its own; who runs goes on, and the queue is empty for who comes."""
    admission = Admission(QueueRules(2, 60.0), 1, clock=clock)
    running = visits.enter(admission)
    admission.move(gate)
    waiting = [visits.enter(admission) for _ in range(2)]
    clock.now += 2.0
    admission.fail(DIED)
    errors = [visit.expect_error() for visit in waiting]
    assert [(error.kind, error.message, error.wait) for error in errors] == [
        (DIED.kind, DIED.message, DIED.wait)] * 2
    assert len({id(error) for error in [*errors, DIED]}) == 3 and DIED.__traceback__ is None
    expected = (0.0, 2.0) if gate in (LOADING, PAUSED) else (2.0, 0.0)
    assert [times(visit) for visit in waiting] == [expected] * 2
    assert (admission.running, admission.demand().waiting) == (1, 0)
    later = visits.enter(admission)
    running.leave()
    admission.move(OPEN)
    later.expect_inside()


def test_the_times_of_a_client_that_leaves(visits: Visits, clock: HandClock) -> None:
    """The start it has seen is loading, though it has not seen the end of it."""
    admission = Admission(RULES, 1, SHUT, clock=clock)
    visit = visits.enter(admission)
    clock.now += 3.0
    admission.move(LOADING)
    clock.now += 4.0
    assert visit.depart().kind is Kind.CLIENT_GONE
    assert times(visit) == (3.0, 4.0)
    clock.now += 5.0
    admission.move(OPEN)
    assert times(visit) == (3.0, 4.0)
