"""Managed engines on virtual time: applies plans to them and answers calls, without any waiting."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from app.engines.plan import plan
from app.engines.unit_facts import Rules, State, UnitFacts

LOAD = 2.0  # s
ANSWER = 0.5  # s
_ROUNDING = 1e-6  # s
_LOOKS = 20_000  # events; a policy that needs more looks again and again without doing anything


@dataclass
class TimedCall:
    """One call: when it came, when it got a slot, and how long its engine was starting meanwhile.

    ``then`` is called with the time when it has been answered.
    """

    model: str
    came: float
    then: Callable[[float], None] = lambda now: None
    granted: float | None = None
    load: float = 0.0
    refused: bool = False

    @property
    def waited(self) -> float:
        """Seconds that count against the longest wait; inf for a call without an answer."""
        return math.inf if self.granted is None else self.granted - self.came - self.load


@dataclass
class TimedEngine:
    """One engine. ``memory`` is in any unit."""

    key: str
    memory: int = 1
    slots: int = 1
    keep: float = 300.0
    state: State = State.STOPPED
    held: bool = False
    running: int = 0
    waiting: list[TimedCall] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    ready_since: float = 0.0
    unused_since: float = 0.0
    turn_end: float = -math.inf

    def facts(self) -> UnitFacts:
        """What the policy sees."""
        unused = not self.running and not self.waiting
        oldest = min((call.came for call in self.waiting), default=None)
        return UnitFacts(
            self.key, self.state, self.memory, self.running, len(self.waiting),
            None if oldest is None else max(oldest, self.turn_end),
            self.unused_since if unused else None,
            self.ready_since, LOAD if self.ready_since else 0.0, self.keep)


class Timeline:
    """Engines, their calls and the policy, event by event.

    Raises AssertionError where the policy breaks a promise: memory over the budget, an engine
    stopped that runs a call, or that has neither been there for ``min_residency`` nor been unused
    for its ``keep``, a start of what is there.
    """

    def __init__(
        self, engines: Iterable[TimedEngine], rules: Rules, stops: Iterable[float] = (0.3,),
    ) -> None:
        """``stops`` is how long it takes engines to end, one after the other, and again."""
        self.engines = {engine.key: engine for engine in engines}
        self.calls: list[TimedCall] = []
        self.now = 0.0
        self._rules = rules
        self._stops: Iterator[float] = itertools.cycle(stops)
        self._number = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def call(
        self, model: str, at: float, then: Callable[[float], None] = lambda now: None,
    ) -> TimedCall:
        """A call for the model that comes at that time."""
        call = TimedCall(model, at, then)
        self.calls.append(call)
        self._at(at, lambda: self.engines[model].waiting.append(call))
        return call

    def run(self) -> None:
        """Everything that happens, until nothing does any more."""
        for _ in range(_LOOKS):
            if not self._events:
                return
            self.now = self._events[0][0]
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
            self._apply()
        raise AssertionError(f"no end after {_LOOKS} events")

    @property
    def starts(self) -> int:
        """How many times an engine was started."""
        return sum(len(engine.starts) for engine in self.engines.values())

    @property
    def longest_wait(self) -> float:
        """The longest that any call waited; inf where one has no answer."""
        return max(call.waited for call in self.calls)

    def _apply(self) -> None:
        made = plan([engine.facts() for engine in self.engines.values()], self.now, self._rules)
        for key in made.refuse:
            self._refuse(self.engines[key])
        for key in made.stop:
            self._stop(self.engines[key])
        for key in made.start:
            self._start(self.engines[key])
        for engine in self.engines.values():
            engine.held = engine.key in made.hold
            self._grant(engine)
        if made.look_at is not None:
            assert self.now < made.look_at < math.inf
            self._at(made.look_at, lambda: None)

    def _refuse(self, engine: TimedEngine) -> None:
        for call in engine.waiting:
            call.refused = True
        engine.waiting.clear()

    def _stop(self, engine: TimedEngine) -> None:
        assert engine.state is State.READY, f"{engine} cannot be stopped"
        assert not engine.running, f"{engine} is stopped with a running call"
        here, unused = self.now - engine.ready_since, self.now - engine.unused_since
        resident = here >= self._rules.min_residency - _ROUNDING
        assert resident or unused >= engine.keep - _ROUNDING, f"{engine} goes too soon"
        engine.state, engine.turn_end = State.STOPPING, self.now
        self._at(self.now + next(self._stops), lambda: self._stopped(engine))

    def _stopped(self, engine: TimedEngine) -> None:
        engine.state = State.STOPPED

    def _start(self, engine: TimedEngine) -> None:
        assert engine.state is State.STOPPED, f"{engine} cannot be started"
        engine.state = State.STARTING
        engine.starts.append(self.now)
        used = sum(other.memory for other in self.engines.values()
                   if other.state is not State.STOPPED)
        assert self._rules.budget is None or used <= self._rules.budget, "over the budget"
        self._at(self.now + LOAD, lambda: self._ready(engine))

    def _ready(self, engine: TimedEngine) -> None:
        engine.state = State.READY
        engine.ready_since = engine.unused_since = self.now
        for call in engine.waiting:
            call.load += self.now - max(engine.starts[-1], call.came)

    def _grant(self, engine: TimedEngine) -> None:
        while (engine.waiting and engine.state is State.READY and not engine.held
               and engine.running < engine.slots):
            call = engine.waiting.pop(0)
            call.granted = self.now
            engine.running += 1
            self._at(self.now + ANSWER, lambda call=call: self._answered(engine, call))

    def _answered(self, engine: TimedEngine, call: TimedCall) -> None:
        engine.running -= 1
        engine.unused_since = self.now
        call.then(self.now)

    def _at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._number), what))
