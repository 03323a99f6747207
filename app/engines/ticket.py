"""One call on its way to a slot."""

import threading

from app.call import Call
from app.engines.order import Waiting
from app.errors import GatewayError


class Ticket:
    """A call that waits for an engine, and how long it has. Its Admission's lock guards it.

    ``event`` wakes the thread that waits: the ticket is ``granted``, it has an ``error``, or how
    long it may go on waiting has changed.
    """

    def __init__(self, call: Call, number: int, turn: int, now: float) -> None:
        self.place = Waiting(call.priority, call.caller, now, number, turn)
        self.needs_slot = call.takes_slot
        self.event = threading.Event()
        self.granted = False
        self.error: GatewayError | None = None
        self.load = 0.0  # s of its wait in which the engine came up, as far as that is over

    def has_loaded(self, since: float, now: float) -> None:
        """A start, or the pause before it, from then until now is over for this call."""
        self.load += now - max(since, self.place.since)
        self.event.set()

    def waited(self, now: float) -> float:
        """Seconds that count, which those are not in which its engine came up."""
        return now - self.place.since - self.load

    def refuse(self, error: GatewayError) -> None:
        """Let the thread that waits raise the error: one of its own, as a raise changes it."""
        self.error = type(error)(
            error.kind, error.message, param=error.param, model=error.model, wait=error.wait)
        self.event.set()
