"""The slots of one engine and the calls that wait for them."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto

from app.call import Call
from app.engines.hangup import Departure
from app.engines.order import Waiting, next_in_line
from app.engines.service_time import ServiceTime
from app.errors import GatewayError, Kind

_STEPS = 4  # a call gets more urgent after each quarter of the longest wait
_REMEMBERED = 1024  # callers whose last turn is known


class Gate(Enum):
    """Whether an engine takes calls."""

    OPEN = auto()
    HELD = auto()  # it runs, and takes no more calls: another model's turn is next
    SHUT = auto()  # there is no engine
    LOADING = auto()  # as SHUT, and the engine is starting: no wait counts


class Full(GatewayError):
    """The queue has no place left; another engine may have."""


@dataclass(frozen=True)
class QueueRules:
    """How many calls may wait, and how long one may wait (s)."""

    size: int
    max_wait: float


@dataclass(frozen=True)
class Demand:
    """What is wanted of an engine at one moment. Times are those of the monotonic clock.

    ``running`` counts calls that hold a slot, ``held`` all that keep the engine from being stopped.
    """

    running: int
    held: int
    waiting: int
    wanted_since: float | None
    unused_since: float | None


class _Ticket:
    """One call on its way to a slot."""

    def __init__(self, call: Call, number: int, now: float) -> None:
        self.place = Waiting(call.priority, call.caller, now, number)
        self.needs_slot = call.takes_slot
        self.event = threading.Event()
        self.granted = False
        self.error: GatewayError | None = None
        self.load = 0.0  # s of its wait in which the engine was starting


class Admission:
    """Grants the slots of one engine. Safe to use from many threads; one lock, no I/O under it."""

    def __init__(
        self, rules: QueueRules, slots: int | None, gate: Gate = Gate.OPEN,
        on_news: Callable[[], None] = lambda: None, clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``slots`` None is as many as come. ``on_news`` hears, outside the lock, of calls that
        wait, and while ``watched`` is set of an engine that is needed no more; it must not block.
        """
        self.rules = rules
        self.slots = slots
        self.watched = False
        self.service = ServiceTime()
        self._on_news = on_news
        self._clock = clock
        self._lock = threading.Lock()
        self._gate = gate
        self._gate_since = self._unused_since = clock()
        self._running = self._held = self._arrived = self._turns = 0
        self._waiting: list[_Ticket] = []
        self._served: OrderedDict[str, int] = OrderedDict()

    @contextmanager
    def entered(self, call: Call, departure: Departure) -> Iterator[None]:
        """The right to use the engine, for as long as the context lasts.

        Blocks until a slot is granted (a small question needs none, only an engine), and writes the
        wait into the call's timing. Raises GatewayError: no place in the queue, too long a wait,
        the engine cannot be had, or the client left.
        """
        began = self._enter(call, departure)
        try:
            yield
        finally:
            self._leave(call, began)

    def move(self, gate: Gate) -> None:
        """From now on the engine takes calls as ``gate`` says."""
        with self._lock:
            now = self._clock()
            if self._gate is Gate.LOADING:
                for ticket in self._waiting:
                    ticket.load += now - max(self._gate_since, ticket.place.since)
                self._unused_since = now
            if gate is not self._gate:
                self._gate, self._gate_since = gate, now
            self._grant()

    def shut_if_unused(self) -> bool:
        """Shut the gate unless a call keeps the engine; whether it is shut."""
        with self._lock:
            if not self._held:
                self._gate, self._gate_since = Gate.SHUT, self._clock()
            return not self._held

    def fail(self, error: GatewayError) -> None:
        """Answer every call that waits with the error."""
        with self._lock:
            failed, self._waiting = self._waiting, []
            for ticket in failed:
                ticket.error = error
                ticket.event.set()

    def demand(self) -> Demand:
        """What is wanted of the engine now."""
        with self._lock:
            unused = not self._held and not self._waiting
            return Demand(
                self._running, self._held, len(self._waiting),
                min((ticket.place.since for ticket in self._waiting), default=None),
                self._unused_since if unused else None,
            )

    @property
    def has_free_slot(self) -> bool:
        """Whether a call would get a slot at once, as far as slots go."""
        return self.slots is None or self._running + len(self._waiting) < self.slots

    @property
    def running(self) -> int:
        """Calls that hold a slot."""
        return self._running

    def _enter(self, call: Call, departure: Departure) -> float:
        now = self._clock()
        with self._lock:
            self._arrived += 1
            ticket = _Ticket(call, self._arrived, now)
            if not self._waiting and self._passable(ticket):
                self._admit(ticket)
                return now
            if self._full():
                raise Full(Kind.QUEUE_FULL, "the queue of the model's engine is full",
                           wait=self._expected_wait())
            self._waiting.append(ticket)
            self._grant()  # a small question passes those who wait for slots
        if ticket.granted:
            return now
        try:
            self._on_news()
            self._wait(ticket, departure)
        finally:
            ended = self._clock()
            call.timing.load += ticket.load
            call.timing.queue += ended - now - ticket.load
        return ended

    def _wait(self, ticket: _Ticket, departure: Departure) -> None:
        departure.attach(ticket.event.set)
        try:
            while not ticket.granted:
                ticket.event.wait(self._patience(ticket))
                with self._lock:
                    error = ticket.error or self._lapse(ticket, departure)
                    if error:
                        self._withdraw(ticket)
                        raise error
        finally:
            departure.detach()

    def _patience(self, ticket: _Ticket) -> float:
        """Seconds after which the ticket has to be looked at."""
        with self._lock:
            return max(0.0, self.rules.max_wait - self._waited(ticket))

    def _waited(self, ticket: _Ticket) -> float:
        """Seconds that count, which those are not in which its engine starts."""
        loading = self._clock() - max(self._gate_since, ticket.place.since)
        now_loading = loading if self._gate is Gate.LOADING else 0.0
        return self._clock() - ticket.place.since - ticket.load - now_loading

    def _lapse(self, ticket: _Ticket, departure: Departure) -> GatewayError | None:
        """Why the ticket waits no longer, if it does not."""
        if departure.gone:
            return GatewayError(Kind.CLIENT_GONE, "the client left")
        if ticket.granted or self._gate is Gate.LOADING:
            return None
        if self._waited(ticket) < self.rules.max_wait:
            return None
        text = f"the call waited {self.rules.max_wait:g} s for the model's engine without a turn"
        return GatewayError(Kind.QUEUE_FULL, text, wait=self._expected_wait())

    def _withdraw(self, ticket: _Ticket) -> None:
        if ticket.granted:
            self._give_back(ticket.needs_slot)
        elif ticket in self._waiting:
            self._waiting.remove(ticket)

    def _leave(self, call: Call, began: float) -> None:
        with self._lock:
            self._give_back(call.takes_slot)
            if call.takes_slot:
                self.service.note(self._clock() - began)
            tell = self.watched and not self._held
        if tell:
            self._on_news()

    def _give_back(self, slot: bool) -> None:
        self._held -= 1
        self._running -= slot
        if not self._held:
            self._unused_since = self._clock()
        self._grant()

    def _passable(self, ticket: _Ticket) -> bool:
        if not ticket.needs_slot:
            # Also of a held engine: a running answer may need the question's answer to end.
            return self._gate is Gate.OPEN or (self._gate is Gate.HELD and self._held > 0)
        return self._gate is Gate.OPEN and (self.slots is None or self._running < self.slots)

    def _admit(self, ticket: _Ticket) -> None:
        ticket.granted = True
        self._held += 1
        self._running += ticket.needs_slot
        if ticket.needs_slot:
            self._turns += 1
            self._served[ticket.place.caller] = self._turns
            self._served.move_to_end(ticket.place.caller)
            if len(self._served) > _REMEMBERED:
                self._served.popitem(last=False)
        ticket.event.set()

    def _grant(self) -> None:
        """Admit whoever may be, in order."""
        while able := [ticket for ticket in self._waiting if self._passable(ticket)]:
            step = self.rules.max_wait / _STEPS
            places = [ticket.place for ticket in able]
            ticket = able[next_in_line(places, self._served, self._clock(), step)]
            self._waiting.remove(ticket)
            self._admit(ticket)

    def _full(self) -> bool:
        """Whether as many wait as may, not counting those for whom there are slots."""
        if self.slots is None:
            return False
        return len(self._waiting) - (self.slots - self._running) >= self.rules.size

    def _expected_wait(self) -> float:
        return self.service.wait(len(self._waiting) + 1, self.slots or 1)
