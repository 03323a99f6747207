"""Whatever calls come: callers share the slots of an engine, and none of them is starved."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.call import Priority
from app.engines.slots import Gate, QueueRules, Slots
from app.engines.ticket import Ticket
from tests.fakes.visits import work

STEP = 3.0
RULES = QueueRules(size=1000, max_wait=4 * STEP)
MANY = settings(max_examples=60, deadline=None, database=None)
HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW


class Arrival(NamedTuple):
    """A call that comes then and takes so long."""

    at: float
    caller: str
    priority: Priority
    takes: float


class Served(NamedTuple):
    """What has become of an arrival: in which place of the order it got its slot, and when."""

    place: int
    at: float


class Replay:
    """Calls for one engine, on virtual time; nobody gives up."""

    def __init__(self, slots: int) -> None:
        self.served: dict[int, Served] = {}
        self._queue = Slots(RULES, slots, Gate.OPEN, 0.0)
        self._events: list[tuple[float, int, int]] = []  # ends (0) come before arrivals (1)
        self._arrivals: dict[int, Arrival] = {}
        self._waiting: dict[int, Ticket] = {}

    def call(self, arrival: Arrival) -> int:
        """One more call; its number."""
        number = len(self._arrivals)
        self._arrivals[number] = arrival
        heapq.heappush(self._events, (arrival.at, 1, number))
        return number

    def run(self, endless: Sequence[Arrival] = (), until: float = 0.0) -> dict[int, Served]:
        """What becomes of all calls; each of `endless` is followed by its like until then."""
        again = {self.call(arrival): arrival for arrival in endless}
        while self._events:
            now, arrives, number = heapq.heappop(self._events)
            if arrives:
                each = self._arrivals[number]
                ticket = self._queue.join(work(caller=each.caller, priority=each.priority), now)
                assert ticket is not None
                self._waiting[number] = ticket
            else:
                self._queue.give_back(True, now)
            for number in self._granted(now):
                if number in again and now < until:
                    again[self.call(again[number]._replace(at=now))] = again[number]
        return self.served

    def _granted(self, now: float) -> list[int]:
        granted = [number for number, ticket in self._waiting.items() if ticket.granted]
        for number in granted:
            del self._waiting[number]
            self.served[number] = Served(len(self.served), now)
            heapq.heappush(self._events, (now + self._arrivals[number].takes, 0, number))
        return granted


TIMES = st.floats(0.0, 20.0)
TAKES = st.one_of(st.floats(0.01, 1.0), st.floats(0.01, 4 * STEP))
SLOTS = st.integers(1, 3)


@st.composite
def backlogs(draw: st.DrawFn) -> tuple[list[Arrival], Arrival]:
    """Calls of other callers, and a single one of a caller that is no less urgent than any."""
    single = Arrival(draw(TIMES), "single", draw(st.sampled_from(Priority)), 1.0)
    priorities = [each for each in Priority if each >= single.priority]
    crowd = [Arrival(draw(st.one_of(st.just(0.0), TIMES)), draw(st.sampled_from("abc")),
                     draw(st.sampled_from(priorities)), draw(TAKES))
             for _ in range(draw(st.integers(1, 40)))]
    return crowd, single


@MANY
@given(backlogs(), SLOTS)
def test_a_single_call_waits_for_one_call_of_each_other_caller(
        calls: tuple[list[Arrival], Arrival], slots: int) -> None:
    """At most, whatever the others have waiting and since when: not for two of the same."""
    crowd, single = calls
    arrivals, made = [single, *crowd], Replay(slots)
    for arrival in arrivals:
        made.call(arrival)
    served = made.run()
    mine = served[0]
    before = [arrivals[number].caller for number, other in served.items()
              if other.at >= single.at and other.place < mine.place
              and arrivals[number].at < single.at]
    assert len(before) == len(set(before)), before
    longest = max(each.takes for each in crowd)
    assert mine.at - single.at <= (1 + len({each.caller for each in crowd})) * longest + 1e-6


@MANY
@given(st.lists(st.tuples(st.floats(0.0, 5.0), st.sampled_from(Priority), st.floats(0.01, 1.0)),
                min_size=1, max_size=5), st.integers(1, 3), SLOTS)
def test_no_call_waits_for_ever(
        mine: list[tuple[float, Priority, float]], others: int, slots: int) -> None:
    """Beside urgent calls of others without an end, a caller has a turn whenever two steps are
    over, and each of its calls, LOW ones too, is served in one of these.
    """
    made = Replay(slots)
    own = {made.call(Arrival(at, "mine", priority, takes)): at for at, priority, takes in mine}
    turn = 2 * STEP + (others + 2) * 1.0  # s; until it is urgent, and all others had one
    urgent = [Arrival(0.0, f"other-{number % others}", HIGH, 0.5 * slots)
              for number in range(others + slots)]
    served = made.run(urgent, until=5.0 + len(own) * turn)
    for number, at in own.items():
        assert served[number].at - at <= len(own) * turn


@pytest.mark.parametrize("stream", [[HIGH], [NORMAL], [HIGH, NORMAL]])
def test_a_callers_urgent_calls_do_not_starve_its_others(stream: list[Priority]) -> None:
    """Where one caller sends all, its LOW call is served after two steps, and the next again."""
    made = Replay(1)
    low = [made.call(Arrival(1.0, "one", LOW, 0.1)) for _ in range(3)]
    served = made.run([Arrival(0.0, "one", each, 0.1) for each in stream * 2], until=30.0)
    for count, number in enumerate(low, 1):
        assert served[number].at - 1.0 <= count * (2 * STEP + 0.5)
