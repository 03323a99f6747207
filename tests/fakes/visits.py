"""Calls that enter an Admission, each in a thread of its own, and leave when the test says so."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.call import Call
from app.engines.admission import Admission
from app.engines.hangup import Departure
from app.errors import GatewayError

PATIENCE = 20.0  # s; a guard against hanging, nothing waits for so long


@dataclass
class EmptyBody:
    """Nothing."""

    raw: bytes = b""
    content_type: str = ""
    model: str | None = None

    def for_model(self, name: str) -> EmptyBody:
        """Still nothing."""
        return self


def work(**more: Any) -> Call:
    """A call that needs a slot."""
    return Call("/v1/chat/completions", "m", EmptyBody(), "id", **more)


def question(**more: Any) -> Call:
    """A call that needs none."""
    return work(method="GET", **more)


class HandClock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return self.now


class Client(Departure):
    """A client that tells when its call begins to wait: the call has its place in the queue then,
    and nobody has looked yet at how long it may wait. ``attached`` is whether it waits."""

    def __init__(self, on_wait: Callable[[Client], None]) -> None:
        super().__init__(None)
        self.attached = False
        self._on_wait = on_wait

    def attach(self, wake: Callable[[], None]) -> None:
        """As Departure does."""
        super().attach(wake)
        self.attached = True
        self._on_wait(self)

    def detach(self) -> None:
        """As Departure does."""
        super().detach()
        self.attached = False


class Visit:
    """One call. Its methods block, and fail after PATIENCE seconds."""

    def __init__(
        self, admission: Admission, call: Call, entries: queue.Queue[Visit],
        on_wait: Callable[[Client], None],
    ) -> None:
        """Returns when the call is inside, waits, or was turned away."""
        self.call = call
        self.error: BaseException | None = None
        self._admission = admission
        self._entries = entries
        self._on_wait = on_wait
        self._settled, self._inside, self._go = (threading.Event() for _ in range(3))
        self._fault: BaseException | None = None
        self.client = Client(self._waits)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._settled.wait(PATIENCE), "the call neither came in nor waits"

    @property
    def inside(self) -> bool:
        """Whether it has come in."""
        return self._inside.is_set()

    def expect_inside(self) -> None:
        """Wait until it is inside."""
        assert self._inside.wait(PATIENCE), f"not inside: {self.error!r}"

    def expect_error(self) -> GatewayError:
        """Wait until it was turned away; why."""
        self._thread.join(PATIENCE)
        assert isinstance(self.error, GatewayError) and not self.inside, self.error
        return self.error

    def leave(self, fault: BaseException | None = None) -> None:
        """Let it end, with this exception if there is one, and wait until it has."""
        self.expect_inside()
        self._fault = fault
        self.stop()
        assert self.error is fault

    def depart(self) -> GatewayError:
        """Its client leaves while it waits; what it was told."""
        self.client.happen()
        return self.expect_error()

    def stop(self) -> None:
        """Let it end as soon as it can, and wait until it has."""
        self._go.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the call does not end"

    def _waits(self, client: Client) -> None:
        self._on_wait(client)
        self._settled.set()

    def _run(self) -> None:
        try:
            with self._admission.entered(self.call, self.client):
                self._inside.set()
                self._entries.put(self)
                self._settled.set()
                assert self._go.wait(PATIENCE), "nobody lets the call end"
                if self._fault:
                    raise self._fault
        except BaseException as error:  # whatever it is, the test sees it
            self.error = error
        finally:
            self._settled.set()


class Visits:
    """All calls of one test."""

    def __init__(self) -> None:
        self.entries: queue.Queue[Visit] = queue.Queue()
        self._all: list[Visit] = []

    def enter(
        self, admission: Admission, call: Call | None = None,
        on_wait: Callable[[Client], None] = lambda client: None,
    ) -> Visit:
        """A call that is inside, waits, or was turned away when this returns."""
        visit = Visit(admission, call or work(), self.entries, on_wait)
        self._all.append(visit)
        return visit

    def next_inside(self) -> Visit:
        """The next one that comes in, in the order in which they do."""
        return self.entries.get(timeout=PATIENCE)

    def end(self) -> None:
        """Nobody waits or runs any more."""
        for visit in self._all:
            visit.client.happen()
            visit.stop()
