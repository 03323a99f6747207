"""The pause after a failure, and how long an engine will go on coming up."""

from __future__ import annotations

import pytest

from app.engines.admission import Admission, Gate, QueueRules
from app.errors import Kind
from tests.fakes.visits import HandClock, Visits

RULES = QueueRules(size=64, max_wait=60.0)


def test_a_pause_is_loading_and_what_follows_is_not(visits: Visits, clock: HandClock) -> None:
    """A call that then has to wait for the engine's turn waits no longer than any other."""
    admission = Admission(RULES, 1, Gate.PAUSED, clock=clock)
    visit = visits.enter(admission)
    clock.now += 100.0
    admission.end_pause()
    clock.now += 61.0
    admission.move(Gate.LOADING)  # which wakes the call once it is over
    admission.move(Gate.SHUT)
    assert visit.expect_error().kind is Kind.QUEUE_FULL
    assert (visit.call.record.queue, visit.call.record.load) == (61.0, 100.0)


@pytest.mark.parametrize("gate", [Gate.OPEN, Gate.LOADING])
def test_there_need_not_be_a_pause_to_end(
        visits: Visits, clock: HandClock, gate: Gate) -> None:
    """An engine that runs or starts does so still."""
    admission = Admission(RULES, 1, gate, clock=clock)
    admission.end_pause()
    visit = visits.enter(admission)
    clock.now += 100.0
    assert visit.inside is (gate is Gate.OPEN) and not visit.error
    admission.move(Gate.OPEN)
    visit.expect_inside()


@pytest.mark.parametrize(("gate", "after", "load"), [
    (Gate.LOADING, 0.0, 5.0), (Gate.LOADING, 2.0, 3.0), (Gate.LOADING, 8.0, 0.0),
    (Gate.PAUSED, 1.0, 5.0), (Gate.SHUT, 1.0, 0.0)])
def test_who_finds_the_queue_full_is_told_of_the_load(
        visits: Visits, clock: HandClock, gate: Gate, after: float, load: float) -> None:
    """What is left of a start that takes as long as the last one, beside the calls ahead."""
    admission = Admission(QueueRules(0, 60.0), 1, Gate.LOADING, clock=clock)
    clock.now += 5.0
    for each in Gate.OPEN, Gate.SHUT, gate:
        admission.move(each)
    waiting = visits.enter(admission)
    clock.now += after
    error = visits.enter(admission).expect_error()
    assert (error.kind, error.wait) == (Kind.QUEUE_FULL, 2.0 + load)
    admission.move(Gate.OPEN)
    waiting.expect_inside()
