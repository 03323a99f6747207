"""The way to an engine: a call waits here until it has a slot, and gives it back here."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.call import Call
from app.engines.hangup import Departure
from app.engines.service_time import ServiceTime
from app.engines.slots import Demand, Gate, Queueing, QueueRules, Slots
from app.engines.ticket import Ticket
from app.errors import GatewayError, Kind

__all__ = ["Admission", "Demand", "Full", "Gate", "QueueRules", "Retired"]


class Full(GatewayError):
    """The queue has no place left; another engine may have."""


class Retired(GatewayError):
    """The configuration has the engine no more: the call goes by the new one, seen by nobody."""


_RETIRED = Retired(Kind.STOPPING, "the configuration has the model's engine no more")


class Admission:
    """Grants the slots of one engine. Safe to use from many threads; one lock, no I/O under it."""

    def __init__(
        self, rules: Queueing, slots: int | None, gate: Gate = Gate.OPEN,
        on_news: Callable[[], None] = lambda: None, clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``slots`` None is as many as come. ``on_news`` hears, outside the lock, of calls that
        wait, and while ``watched`` is set of an engine that is needed no more; it must not block.
        """
        self.rules = rules
        self.watched = False
        self.owed_since: float | None = None  # since then calls waited for its turn in vain
        self.ahead = 0.0  # s; what calls of other models take that come first
        self.retired = False
        self.service = ServiceTime()
        self._on_news = on_news
        self._clock = clock
        self._lock = threading.Lock()
        self._slots = Slots(rules, slots, gate, clock())

    @contextmanager
    def entered(self, call: Call, departure: Departure) -> Iterator[None]:
        """The right to use the engine, for as long as the context lasts.

        Blocks until a slot is granted (a small question needs none, only an engine), and writes the
        wait into the call's record. Raises GatewayError: no place in the queue, too long a wait,
        the engine cannot be had or is Retired, or the call has to end.
        """
        began = self._enter(call, departure)
        try:
            yield
        finally:
            self._leave(call, began)

    def move(self, gate: Gate) -> None:
        """From now on the engine takes calls as ``gate`` says."""
        with self._lock:
            if gate is Gate.LOADING:
                self.owed_since = None
            self._slots.move(gate, self._clock())

    def end_pause(self) -> None:
        """The pause after a failure is over; what is waited for from now on is the engine's turn.

        Nothing happens where there is no pause.
        """
        with self._lock:
            if self._slots.gate is Gate.PAUSED:
                self._slots.move(Gate.SHUT, self._clock())

    def shut_if_unused(self) -> bool:
        """Shut the gate unless a call keeps the engine; whether it is shut."""
        with self._lock:
            if not self._slots.held:
                self._slots.move(Gate.SHUT, self._clock())
            return not self._slots.held

    def fail(self, error: GatewayError) -> None:
        """Answer every call that waits with the error."""
        with self._lock:
            self._slots.refuse_all(error, self._clock())

    def retire(self) -> None:
        """Take no more calls: who waits, and who comes, gets Retired. Running ones go on."""
        with self._lock:
            self.retired = True
            self._slots.refuse_all(_RETIRED, self._clock())

    def resume(self) -> None:
        """Take calls again."""
        with self._lock:
            self.retired = False

    def demand(self) -> Demand:
        """What is wanted of the engine now."""
        with self._lock:
            return self._slots.demand()

    @property
    def slots(self) -> int | None:
        """How many calls the engine answers at the same time; None: as many as come.

        May be set at any time: more slots let waiting calls pass, fewer take none away.
        """
        return self._slots.count

    @slots.setter
    def slots(self, slots: int | None) -> None:
        with self._lock:
            self._slots.count = slots
            self._slots.grant(self._clock())

    @property
    def has_free_slot(self) -> bool:
        """Whether a call would get a slot at once, as far as slots go."""
        with self._lock:
            return self._slots.free

    @property
    def running(self) -> int:
        """Calls that hold a slot."""
        return self._slots.running

    def _enter(self, call: Call, departure: Departure) -> float:
        with self._lock:
            if self.retired:
                raise Retired(_RETIRED.kind, _RETIRED.message)
            now = self._clock()
            ticket = self._slots.join(call, now)
            if ticket is None:
                raise Full(Kind.QUEUE_FULL, "the queue of the model's engine is full",
                           wait=self._expected_wait(len(self._slots.waiting) + 1))
            if ticket.granted:
                return now
            closed = self._slots.gate is not Gate.OPEN
        try:
            if closed:
                self._on_news()
            self._wait(ticket, departure)
        except BaseException:
            self._withdraw(ticket)
            raise
        finally:
            ended = self._clock()
            call.record.load += ticket.load
            call.record.queue += ticket.waited(ended)
        return ended

    def _wait(self, ticket: Ticket, departure: Departure) -> None:
        departure.attach(ticket.event.set)
        try:
            while True:
                with self._lock:
                    ticket.event.clear()
                    patience = self._patience(ticket, departure)
                    if ticket.granted:
                        return
                ticket.event.wait(patience)
        finally:
            departure.detach()

    def _patience(self, ticket: Ticket, departure: Departure) -> float | None:
        """Seconds after which the ticket has to be looked at; raises where it waits no longer.

        None while the engine comes up: that has limits of its own, and its end wakes the ticket.
        """
        departure.check()
        if ticket.error:
            raise ticket.error
        patience = self._slots.patience(ticket, self._clock())
        if ticket.granted or patience is None or patience > 0:
            return patience
        if self._slots.gate is Gate.SHUT:
            # Whoever is told to come back shall not find that the others' turn has begun anew.
            self.owed_since = min(self.owed_since or math.inf, ticket.place.since)
        text = f"the call waited {self.rules.max_wait:g} s for the model's engine without a turn"
        wait = self._expected_wait(len(self._slots.waiting))  # itself included
        raise GatewayError(Kind.QUEUE_FULL, text, wait=wait)

    def _expected_wait(self, calls: int) -> float:
        """Seconds until so many calls are through."""
        own = self.service.wait(calls, self._slots.count or calls)
        ahead = self.ahead if self._slots.gate is Gate.SHUT else 0.0
        return own + ahead + self._slots.loads_for(self._clock())

    def _withdraw(self, ticket: Ticket) -> None:
        with self._lock:
            if ticket.error:
                return  # it lost its place when it got the error
            self._slots.withdraw(ticket, self._clock())
            tell = self.watched and not self._slots.held
        if tell:
            self._on_news()

    def _leave(self, call: Call, began: float) -> None:
        with self._lock:
            now = self._clock()
            if call.takes_slot:
                self.service.note(now - began)
            self._slots.give_back(call.takes_slot, now)
            tell = self.watched and not self._slots.held
        if tell:
            self._on_news()
