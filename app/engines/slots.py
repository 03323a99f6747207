"""The slots of one engine and who waits for them, as plain state that one lock guards."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from app.call import Call
from app.engines.order import next_in_line
from app.engines.ticket import Ticket
from app.engines.turns import Turns
from app.errors import GatewayError

_STEPS = 4  # a call gets more urgent after each quarter of the longest wait without a turn


class Gate(Enum):
    """Whether an engine takes calls."""

    OPEN = auto()
    HELD = auto()  # it runs, and takes no more calls: another model's turn is next
    SHUT = auto()  # there is no engine
    PAUSED = auto()  # as SHUT, for the pause after a failure: no wait counts
    LOADING = auto()  # as SHUT, and the engine is starting: no wait counts


_USABLE = (Gate.OPEN, Gate.HELD)
_COMING_UP = (Gate.PAUSED, Gate.LOADING)


class Queueing(Protocol):
    """How many calls may wait, and how long one may wait (s); both may change."""

    @property
    def size(self) -> int: ...

    @property
    def max_wait(self) -> float: ...


@dataclass(frozen=True)
class QueueRules:
    """Queueing that stays as it is."""

    size: int
    max_wait: float


@dataclass(frozen=True)
class Demand:
    """What is wanted of an engine at one moment. Times are those of the monotonic clock.

    ``running`` counts calls that hold a slot, ``held`` all that keep the engine from being stopped.
    ``wanted_since`` is since when the oldest call waits for the engine's turn: not from before its
    last turn ended, or a model with a long queue would be next again at once.
    """

    running: int
    held: int
    waiting: int
    wanted_since: float | None
    unused_since: float | None


class Slots:
    """Who holds a slot, who waits, and whether the engine takes calls.

    Not locked: its Admission is. Whoever may pass does so at once, so none that waits could.
    """

    def __init__(self, rules: Queueing, count: int | None, gate: Gate, now: float) -> None:
        """``count`` None is as many as come."""
        self.count = count
        self.gate = gate
        self.running = self.held = 0
        self.waiting: list[Ticket] = []
        self._rules = rules
        self._gate_since = self._unused_since = now
        self._turn_end = -math.inf
        self._load_time = 0.0  # s; of the last start
        self._arrived = 0
        self._turns = Turns()

    def join(self, call: Call, now: float) -> Ticket | None:
        """A ticket for the call, granted or waiting; None where the queue is full."""
        self._arrived += 1
        ticket = Ticket(call, self._arrived, self._turns.given, now)
        if self._passable(ticket):
            self._admit(ticket, now)
        elif self._full():
            return None
        else:
            self.waiting.append(ticket)
        return ticket

    def withdraw(self, ticket: Ticket, now: float) -> None:
        """Take back the ticket's slot, or its place in the queue."""
        if ticket.granted:
            self.give_back(ticket.needs_slot, now)
        else:
            self._count_load([ticket], now)
            self.waiting.remove(ticket)

    def give_back(self, slot: bool, now: float) -> None:
        """A call has ended; ``slot`` is whether it held one."""
        self.held -= 1
        self.running -= slot
        if not self.held:
            self._unused_since = now
        self.grant(now)

    def grant(self, now: float) -> None:
        """Admit whoever may be, in order."""
        while able := [ticket for ticket in self.waiting if self._passable(ticket)]:
            step = self._rules.max_wait / _STEPS
            places = [ticket.place for ticket in able]
            ticket = able[next_in_line(places, self._turns.last, now, step)]
            self.waiting.remove(ticket)
            self._admit(ticket, now)

    def move(self, gate: Gate, now: float) -> None:
        """From now on the engine takes calls as ``gate`` says."""
        if gate is self.gate:
            return
        self._count_load(self.waiting, now)
        if self.gate is Gate.LOADING:
            self._unused_since = now
            if gate in _USABLE:
                self._load_time = now - self._gate_since
        if self.gate in _USABLE and gate not in _USABLE:
            self._turn_end = now
        self.gate, self._gate_since = gate, now
        self.grant(now)

    def refuse_all(self, error: GatewayError, now: float) -> None:
        """Nobody waits any more: all get the error."""
        self._count_load(self.waiting, now)
        refused, self.waiting = self.waiting, []
        for ticket in refused:
            ticket.refuse(error)

    def patience(self, ticket: Ticket, now: float) -> float | None:
        """Seconds for which the ticket may go on waiting; None while the engine comes up."""
        if self.gate in _COMING_UP:
            return None
        return self._rules.max_wait - ticket.waited(now)

    def loads_for(self, now: float) -> float:
        """Seconds for which the engine will go on coming up, if this start takes as the last."""
        if self.gate is Gate.LOADING:
            return max(0.0, self._load_time - (now - self._gate_since))
        return self._load_time if self.gate is Gate.PAUSED else 0.0

    def demand(self) -> Demand:
        """What is wanted of the engine now."""
        oldest = min((ticket.place.since for ticket in self.waiting), default=None)
        return Demand(
            self.running, self.held, len(self.waiting),
            None if oldest is None else max(oldest, self._turn_end),
            None if self.held or self.waiting else self._unused_since,
        )

    @property
    def free(self) -> bool:
        """Whether there are slots for more than those who hold one or wait for one."""
        wanted = self.running + sum(ticket.needs_slot for ticket in self.waiting)
        return self.count is None or wanted < self.count

    def _passable(self, ticket: Ticket) -> bool:
        if not ticket.needs_slot:
            # Also of a held engine: a running answer may need the question's answer to end.
            # Not for other questions' sake, or they could hold the engine for ever.
            return self.gate is Gate.OPEN or (self.gate is Gate.HELD and self.running > 0)
        return self.gate is Gate.OPEN and (self.count is None or self.running < self.count)

    def _admit(self, ticket: Ticket, now: float) -> None:
        ticket.granted = True
        self.held += 1
        self.running += ticket.needs_slot
        if ticket.needs_slot:
            self._turns.give(ticket.place.caller, ticket.place.priority, now)
        ticket.event.set()

    def _full(self) -> bool:
        """Whether as many wait as may, not counting those for whom there are slots."""
        if self.count is None:
            return False
        return len(self.waiting) - max(0, self.count - self.running) >= self._rules.size

    def _count_load(self, tickets: Iterable[Ticket], now: float) -> None:
        """Count the start that runs or the pause before it, if any, as these tickets' load."""
        if self.gate in _COMING_UP:
            for ticket in tickets:
                ticket.has_loaded(self._gate_since, now)
