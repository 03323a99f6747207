"""What an Admission tells of its engine: what is wanted of it, since when, and that it changed."""

from __future__ import annotations

import pytest

from app.call import Call
from app.engines.admission import Admission, Demand, Gate, QueueRules
from app.errors import GatewayError, Kind
from tests.fakes.visits import HandClock, Visits, question, work

RULES = QueueRules(size=64, max_wait=60.0)
OPEN, HELD, SHUT, LOADING = Gate.OPEN, Gate.HELD, Gate.SHUT, Gate.LOADING
START = 1000.0  # what the clock says at first


def test_what_is_wanted(visits: Visits, clock: HandClock) -> None:
    """Calls with slots, all that run, all that wait, and since when the first of these does."""
    admission = Admission(RULES, 2, clock=clock)
    assert admission.demand() == Demand(0, 0, 0, None, START)
    for call in (work(), work(), question(), work(), work()):
        clock.now += 1.0
        visits.enter(admission, call)
    assert admission.demand() == Demand(2, 3, 2, START + 4.0, None)


def test_unused_since_the_end_of_the_last_call(visits: Visits, clock: HandClock) -> None:
    """Work or a small question; not while one runs or waits."""
    admission = Admission(RULES, 2, clock=clock)
    calls = [visits.enter(admission), visits.enter(admission), visits.enter(admission, question())]
    found = []
    for visit in calls:
        clock.now += 1.0
        visit.leave()
        found.append(admission.demand().unused_since)
    clock.now += 5.0
    assert found == [None, None, START + 3.0]
    assert admission.demand().unused_since == START + 3.0


def test_unused_since_the_engine_is_there(visits: Visits, clock: HandClock) -> None:
    """If nobody is left who waits for it when it is."""
    admission = Admission(RULES, 1, SHUT, clock=clock)
    visit = visits.enter(admission)
    admission.move(LOADING)
    assert admission.demand().unused_since is None
    visit.depart()
    assert admission.demand().unused_since == START
    clock.now += 2.0
    admission.move(OPEN)
    assert admission.demand().unused_since == START + 2.0
    clock.now += 2.0
    admission.move(HELD)
    admission.move(OPEN)
    assert admission.demand().unused_since == START + 2.0


def test_a_model_waits_for_its_turn_since_its_last_one_ended(
        visits: Visits, clock: HandClock) -> None:
    """Or since its oldest call came, if that is later; failed starts in between are no turns."""
    admission = Admission(RULES, 1, clock=clock)
    running, waiting = visits.enter(admission), visits.enter(admission)
    clock.now += 10.0
    admission.move(HELD)
    clock.now += 1.0
    running.leave()
    assert admission.demand().wanted_since == START
    assert admission.shut_if_unused()
    ended = START + 11.0
    assert admission.demand().wanted_since == ended
    for gate in (SHUT, LOADING, SHUT, LOADING):
        clock.now += 1.0
        admission.move(gate)
        assert admission.demand().wanted_since == ended
    assert admission.shut_if_unused()
    assert admission.demand().wanted_since == ended
    waiting.depart()
    visits.enter(admission)
    assert admission.demand().wanted_since == START + 15.0


@pytest.mark.parametrize("call", [work(), question()], ids=["work", "question"])
def test_an_engine_is_shut_only_if_no_call_keeps_it(visits: Visits, call: Call) -> None:
    """Neither work nor a small question; it stays as it was then."""
    admission = Admission(RULES, 1)
    visit = visits.enter(admission, call)
    assert not admission.shut_if_unused()
    assert visits.enter(admission, question()).inside
    for _ in range(2):
        assert not admission.shut_if_unused()
        visits.next_inside().leave()
    assert not visit.error and admission.shut_if_unused()


@pytest.mark.parametrize("gate", [SHUT, LOADING, HELD])
def test_calls_that_wait_do_not_keep_an_engine(visits: Visits, gate: Gate) -> None:
    """They wait on, for its next start."""
    admission = Admission(RULES, 1, gate)
    waiting = visits.enter(admission)
    assert admission.shut_if_unused() and admission.shut_if_unused()
    assert not waiting.inside
    admission.move(OPEN)
    waiting.expect_inside()


class News:
    """Counts the news, and asks at each for what whoever hears it would ask: it may take locks."""

    def __init__(self) -> None:
        self.admission: Admission | None = None
        self.heard: list[Demand] = []

    def __call__(self) -> None:
        assert self.admission is not None
        assert self.admission.has_free_slot in (True, False)
        self.heard.append(self.admission.demand())


@pytest.fixture
def news() -> News:
    """Nothing yet."""
    return News()


def told(news: News, slots: int, gate: Gate) -> Admission:
    """An Admission that tells its news."""
    news.admission = Admission(RULES, slots, gate, news)
    news.admission.watched = True
    return news.admission


@pytest.mark.parametrize("gate", [SHUT, LOADING, HELD])
@pytest.mark.parametrize("call", [work(), question()], ids=["work", "question"])
def test_news_of_calls_at_a_closed_gate(
        visits: Visits, news: News, gate: Gate, call: Call) -> None:
    """Each is told when it waits there already; and when it does no more, unless it got in."""
    admission = told(news, 1, gate)
    first, second = visits.enter(admission), visits.enter(admission, call)
    assert [demand.waiting for demand in news.heard] == [1, 2]
    second.depart()
    assert [demand.waiting for demand in news.heard] == [1, 2, 1]
    admission.move(OPEN)
    first.expect_inside()
    assert len(news.heard) == 3


def test_no_news_of_calls_at_an_open_gate(visits: Visits, news: News) -> None:
    """Whoever runs, waits for a slot, gets one or leaves is no news while the engine is needed."""
    admission = told(news, 1, OPEN)
    first, second, third = (visits.enter(admission) for _ in range(3))
    asked = visits.enter(admission, question())
    third.depart()
    first.leave()
    second.expect_inside()
    second.leave()
    assert news.heard == []
    asked.leave()
    assert [(demand.held, demand.waiting) for demand in news.heard] == [(0, 0)]


def test_news_of_a_held_engine_whose_calls_have_ended(visits: Visits, news: News) -> None:
    """Though others wait for its next turn: it may be stopped now."""
    admission = told(news, 2, OPEN)
    running = [visits.enter(admission), visits.enter(admission)]
    visits.enter(admission)
    admission.move(HELD)
    running[0].leave()
    assert news.heard == []
    running[1].leave()
    assert [(demand.held, demand.waiting) for demand in news.heard] == [(0, 1)]


def test_news_of_a_client_that_left_with_its_slot(visits: Visits, news: News) -> None:
    """The engine is needed no more, as if its call had ended."""
    admission = told(news, 1, OPEN)
    running = visits.enter(admission)
    visits.enter(admission, on_wait=lambda client: (running.leave(), client.happen())) \
        .expect_error()
    assert [(demand.held, demand.waiting) for demand in news.heard] == [(0, 0)]


def test_no_news_from_those_who_were_answered(visits: Visits, news: News) -> None:
    """Whoever answered them knows it."""
    admission = told(news, 1, SHUT)
    waiting = [visits.enter(admission) for _ in range(3)]
    admission.fail(GatewayError(Kind.ENGINE_NOT_READY, "no"))
    for visit in waiting:
        visit.expect_error()
    assert len(news.heard) == 3


def test_an_engine_that_nobody_watches_ends_its_calls_in_silence(
        visits: Visits, news: News) -> None:
    """Each piece of news wakes a thread, and most ends are of interest to nobody."""
    admission = told(news, 1, OPEN)
    admission.watched = False
    visits.enter(admission).leave()
    assert news.heard == []
