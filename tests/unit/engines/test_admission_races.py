"""Many threads at one Admission: no call without an engine, no slot lost, none given twice."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from app.call import Call, Priority
from app.engines.admission import Admission, Gate, QueueRules
from app.engines.hangup import Departure
from app.errors import GatewayError, Kind
from tests.fakes.visits import PATIENCE, Client, question, work

RULES = QueueRules(size=1000, max_wait=60.0)
ROUNDS = 150
CALLS = 120  # of each thread


@pytest.fixture(autouse=True)
def _frequent_switches() -> Iterator[None]:
    """Threads take turns far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def yielding_clock() -> float:
    """A clock that lets other threads run whenever it is asked, so in the midst of each step."""
    time.sleep(0)
    return time.monotonic()


def together(*works: Callable[[], None], rounds: int = 1) -> None:
    """Run them in threads that begin each round at the same moment; raises what they raise."""
    barrier, faults = threading.Barrier(len(works), timeout=PATIENCE), []

    def run(what: Callable[[], None]) -> None:
        try:
            for _ in range(rounds):
                barrier.wait()
                what()
        except BaseException as fault:
            faults.append(fault)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(what,), daemon=True) for what in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    if faults:
        raise faults[0]
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"


def assert_nothing_held(admission: Admission, slots: int) -> None:
    """All slots are there, and no more: one call more than slots would have to wait."""
    admission.move(Gate.OPEN)
    admission.slots = slots
    demand = admission.demand()
    assert (demand.running, demand.held, demand.waiting) == (0, 0, 0)


class Engine:
    """An engine that is there or not, and the calls inside."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.there = True
        self.inside = 0
        self.served = 0
        self._lock = threading.Lock()

    def serve(self, slot: bool = True) -> None:
        """A call that has come in: the engine has to be there from its beginning to its end."""
        with self._lock:
            self.inside += slot
            self.served += 1
            assert self.there and self.inside <= self.slots
        with self._lock:
            self.inside -= slot
            assert self.there, "the engine went while a call was inside"


@pytest.mark.parametrize("made", [work, question])
def test_no_call_is_inside_when_the_gate_was_shut(made: Callable[[], Call]) -> None:
    """Whichever is first: the call is inside and the engine stays, or it is gone and they wait."""
    engine = Engine(slots=2)
    admission = Admission(RULES, engine.slots, clock=yielding_clock)

    def come() -> None:
        with admission.entered(made(), Departure(None)):
            engine.serve(slot=made is work)

    def shut() -> None:
        while not admission.shut_if_unused():
            pass
        engine.there = False
        assert admission.demand().held == 0
        engine.there = True
        admission.move(Gate.OPEN)

    together(come, come, come, come, shut, rounds=ROUNDS)
    assert engine.served == 4 * ROUNDS
    assert_nothing_held(admission, engine.slots)


def test_a_grant_and_a_departure_at_the_same_moment() -> None:
    """Whichever is first, the slot is there for the next call, and nobody who left is inside."""
    for _ in range(ROUNDS):
        admission = Admission(RULES, 1, clock=yielding_clock)
        waits = threading.Event()
        departure = Client(lambda _, waits=waits: waits.set())
        holding = admission.entered(work(), Departure(None))
        holding.__enter__()
        outcome: list[object] = []

        def wait() -> None:
            try:
                with admission.entered(work(), departure):
                    outcome.append("inside")
            except GatewayError as error:
                outcome.append(error.kind)

        def release() -> None:
            assert waits.wait(PATIENCE)
            holding.__exit__(None, None, None)

        def leave() -> None:
            assert waits.wait(PATIENCE)
            departure.happen()

        together(wait, release, leave)
        assert outcome in (["inside"], [Kind.CLIENT_GONE])
        assert_nothing_held(admission, 1)


class Storm:
    """Calls of all kinds, clients that leave, waits that end, a gate that moves, changing slots."""

    def __init__(self, seed: int) -> None:
        self.admission = Admission(QueueRules(6, 0.002), 3, clock=yielding_clock)
        self.engine = Engine(slots=3)
        self.outcomes: list[Kind | None] = []
        self._seed = seed
        self._departures: list[Departure] = []
        self._calming = threading.Event()

    def come(self, number: int) -> None:
        """One call after another."""
        chance = random.Random(f"{self._seed} {number}")
        for _ in range(CALLS):
            departure = Departure(None)
            self._departures.append(departure)
            try:
                self._call(chance, departure)
                self.outcomes.append(None)
            except GatewayError as error:
                self.outcomes.append(error.kind)
        self._calming.set()

    def disturb(self) -> None:
        """Until one has made all its calls; the others must not wait at a gate nobody opens."""
        chance = random.Random(self._seed)
        while not self._calming.is_set():
            self.admission.move(chance.choice([Gate.OPEN, Gate.OPEN, *Gate]))
            self.admission.slots = chance.choice([1, 2, 3])
            if chance.random() < 0.05:
                self.admission.fail(GatewayError(Kind.ENGINE_NOT_READY, "no"))
            if self._departures and chance.random() < 0.3:
                self._departures[-chance.randint(1, min(9, len(self._departures)))].happen()
        self.admission.move(Gate.OPEN)

    def _call(self, chance: random.Random, departure: Departure) -> None:
        call = chance.choice([work, work, question])(
            caller=str(chance.randint(0, 3)), priority=chance.choice(list(Priority)))
        with self.admission.entered(call, departure):
            self.engine.serve(call.takes_slot)
            if chance.random() < 0.1:
                raise GatewayError(Kind.UPSTREAM_ERROR, "broken")


@pytest.mark.parametrize("seed", range(3))
def test_everything_at_once(seed: int) -> None:
    """Each call comes in or is told why not; in the end nothing is held."""
    storm = Storm(seed)
    together(*[lambda number=number: storm.come(number) for number in range(6)], storm.disturb)
    assert len(storm.outcomes) == 6 * CALLS
    assert {None, Kind.UPSTREAM_ERROR} <= set(storm.outcomes) <= {
        None, Kind.UPSTREAM_ERROR, Kind.QUEUE_FULL, Kind.CLIENT_GONE, Kind.ENGINE_NOT_READY}
    assert storm.engine.inside == 0
    assert_nothing_held(storm.admission, 3)
