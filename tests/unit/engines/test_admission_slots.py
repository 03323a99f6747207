"""A slot is given back once, however its call ends; and how many there are may change."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from app.engines.admission import Admission, Gate, QueueRules
from app.engines.hangup import Departure
from app.errors import GatewayError, Kind
from tests.fakes.visits import Client, HandClock, Visits, question, work

RULES = QueueRules(size=64, max_wait=60.0)
NOBODY = Departure(None)


def assert_all_free(admission: Admission, visits: Visits, slots: int) -> None:
    """So many get in, not one more."""
    demand = admission.demand()
    assert (demand.running, demand.held, demand.waiting) == (0, 0, 0)
    inside = [visits.enter(admission) for _ in range(slots)]
    assert all(visit.inside for visit in inside)
    assert not visits.enter(admission).inside


@pytest.mark.parametrize("fault", [
    None, GatewayError(Kind.UPSTREAM_ERROR, "broken"), ValueError("a fault"),
    KeyboardInterrupt(), GeneratorExit(), SystemExit()], ids=repr)
def test_however_a_call_ends(visits: Visits, fault: BaseException | None) -> None:
    """Its slot is free once, and the exception passes."""
    admission = Admission(RULES, 2)
    visits.enter(admission).leave(fault)
    visits.enter(admission, question()).leave(fault)
    assert_all_free(admission, visits, 2)


def test_a_slot_that_is_handed_on(visits: Visits) -> None:
    """It comes back when whoever has it last lets it go, and closing twice does nothing."""
    admission = Admission(RULES, 1)
    with ExitStack() as held:
        held.enter_context(admission.entered(work(), NOBODY))
        later = held.pop_all()
    assert admission.running == 1
    later.close()
    later.close()
    assert_all_free(admission, visits, 1)


def test_an_exception_while_it_waits(visits: Visits) -> None:
    """Not even a fault of the gateway leaves a place in the queue taken for ever."""
    def fail(_: Client) -> None:
        raise KeyError("a fault")

    admission = Admission(RULES, 1)
    running = visits.enter(admission)
    waiting = visits.enter(admission, on_wait=fail)
    waiting.stop()
    assert isinstance(waiting.error, KeyError)
    running.leave()
    assert_all_free(admission, visits, 1)


def test_an_exception_of_whoever_hears_the_news(visits: Visits) -> None:
    """Nor does one there."""
    def fail() -> None:
        raise KeyError("a fault")

    admission = Admission(RULES, 1, Gate.SHUT, on_news=fail)
    with pytest.raises(KeyError):
        with admission.entered(work(), NOBODY):
            raise AssertionError("there is no engine")
    admission.move(Gate.OPEN)
    assert_all_free(admission, visits, 1)


def test_a_client_that_leaves_as_its_call_gets_a_slot(visits: Visits) -> None:
    """The call is not served, and the slot is the next one's."""
    admission = Admission(RULES, 1)
    running = visits.enter(admission)
    granted = []

    def get_a_slot_and_leave(client: Client) -> None:
        running.leave()
        granted.append(admission.running)
        client.happen()

    gone = visits.enter(admission, on_wait=get_a_slot_and_leave)
    assert gone.expect_error().kind is Kind.CLIENT_GONE
    assert granted == [1]
    assert_all_free(admission, visits, 1)


def test_the_slot_of_a_client_that_left_is_the_next_ones(visits: Visits) -> None:
    """Whoever waits behind it gets in."""
    admission = Admission(RULES, 1)
    running = visits.enter(admission)
    behind = []

    def get_a_slot_and_leave(client: Client) -> None:
        behind.append(visits.enter(admission))
        running.leave()
        client.happen()

    gone = visits.enter(admission, on_wait=get_a_slot_and_leave)
    assert gone.expect_error().kind is Kind.CLIENT_GONE
    behind[0].expect_inside()


def test_a_grant_in_the_last_moment(visits: Visits, clock: HandClock) -> None:
    """A call that has a slot does not look at how long it waited for it."""
    admission = Admission(RULES, 1, clock=clock)
    running = visits.enter(admission)

    def get_a_slot_late(_: Client) -> None:
        running.leave()
        clock.now += 61.0

    visits.enter(admission, on_wait=get_a_slot_late).expect_inside()
    assert admission.running == 1


def test_a_client_that_leaves_when_its_call_is_inside(visits: Visits) -> None:
    """That is the engine's connection's business: the slot comes back when the call ends."""
    admission = Admission(RULES, 1)
    running, waiting = visits.enter(admission), visits.enter(admission)
    running.leave()
    waiting.expect_inside()
    assert not waiting.client.attached
    waiting.client.happen()
    assert admission.running == 1
    waiting.leave()
    assert_all_free(admission, visits, 1)


def test_more_slots_let_waiting_calls_pass(visits: Visits) -> None:
    """As many as there are now, in their order."""
    admission = Admission(RULES, 1)
    calls = [visits.enter(admission) for _ in range(6)]
    admission.slots = 3
    for visit in calls[:3]:
        visit.expect_inside()
    demand = admission.demand()
    assert (admission.slots, demand.running, demand.waiting) == (3, 3, 3)
    admission.slots = None
    for visit in calls:
        visit.expect_inside()


def test_more_slots_of_an_engine_that_is_not_there(visits: Visits) -> None:
    """Let nobody pass before it is."""
    admission = Admission(RULES, 1, Gate.LOADING)
    calls = [visits.enter(admission) for _ in range(3)]
    admission.slots = 2
    assert admission.demand().running == 0
    admission.move(Gate.OPEN)
    for visit in calls[:2]:
        visit.expect_inside()
    assert admission.demand().waiting == 1


def test_fewer_slots_take_none_away(visits: Visits) -> None:
    """Those who have one end first, and the queue is as long as before."""
    admission = Admission(QueueRules(1, 60.0), 3)
    calls = [visits.enter(admission) for _ in range(3)]
    admission.slots = 1
    assert admission.demand().running == 3
    waiting = visits.enter(admission)
    assert visits.enter(admission).expect_error().kind is Kind.QUEUE_FULL
    for visit in calls[:2]:
        visit.leave()
    assert not waiting.inside and admission.demand().waiting == 1
    calls[2].leave()
    waiting.expect_inside()
    assert admission.running == 1


def test_whether_a_slot_is_free(visits: Visits) -> None:
    """Slots that somebody waits for are not free; whoever needs none does not count."""
    admission = Admission(RULES, 2, Gate.SHUT)
    free = [admission.has_free_slot]
    for call in (question(), work(), work(), work()):
        visits.enter(admission, call)
        free.append(admission.has_free_slot)
    assert free == [True, True, True, False, False]
    admission.slots = 4
    assert admission.has_free_slot
    admission.move(Gate.OPEN)
    assert admission.has_free_slot
    admission.slots = 3
    assert not admission.has_free_slot
