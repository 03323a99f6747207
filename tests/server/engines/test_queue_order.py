"""Who is served next: the more urgent, then callers in turn, then who came first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import pytest

from tests.fakes.raw_client import RawAnswer
from tests.server.engines.calling import Crowd, Header, crowd, succeeds
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine

CALLERS: dict[str, tuple[Header, Header]] = {
    "by_key": (("Authorization", "Bearer a"), ("Authorization", "Bearer b")),
    "by_address": (("X-Forwarded-For", "10.0.0.1"), ("X-Forwarded-For", "10.0.0.2")),
}


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway before engines of one slot, whose queues nobody has to leave."""
    return start([engine(["ranked", "fifo", *CALLERS, "many", "mixed"], slots=1)],
                 queue={"size": 100, "max-wait": "5m"})


@contextmanager
def held(gateway: ManagedGateway, model: str, *headers: Header) -> Iterator[Queue]:
    """The one slot of the model is taken until the context is left; all calls then succeed."""
    gate = gateway.directory / f"{model}.gate"
    with crowd(gateway.url) as calls:
        queue = Queue(gateway, calls, model)
        first = calls.chat(model, f"id:holder until:{gate}", headers)
        gateway.journal.one("begin", model, "holder")
        try:
            yield queue
        finally:
            gate.touch()
        for future in [first, *queue.futures]:
            succeeds(future.result())


class Queue:
    """Calls that wait for the slot of one model."""

    def __init__(self, gateway: ManagedGateway, calls: Crowd, model: str) -> None:
        self._gateway = gateway
        self._calls = calls
        self._model = model
        self.futures: list[Future[RawAnswer]] = []

    def add(self, name: str, *headers: Header, **fields: str) -> None:
        """One more call; it is queued when this returns."""
        self.futures.append(self._calls.chat(self._model, f"id:{name}", headers, **fields))
        self._gateway.wait_for_queue(self._model, len(self.futures))

    def add_many(self, names: list[str], *headers: Header) -> None:
        """More calls, which come in any order; they are queued when this returns."""
        for name in names:
            self.futures.append(self._calls.chat(self._model, f"id:{name}", headers))
        self._gateway.wait_for_queue(self._model, len(self.futures))


def served(gateway: ManagedGateway, model: str) -> list[str]:
    """The ids of the queued calls as they were served."""
    return gateway.journal.order("begin", model)[1:]


def test_first_come_first_served(gateway: ManagedGateway) -> None:
    """Among the calls of one caller that are equally urgent."""
    with held(gateway, "fifo") as queue:
        for number in range(5):
            queue.add(str(number))
    assert served(gateway, "fifo") == ["0", "1", "2", "3", "4"]


def test_the_more_urgent_comes_first(gateway: ManagedGateway) -> None:
    """HIGH before NORMAL before LOW; who says nothing is NORMAL."""
    with held(gateway, "ranked") as queue:
        for number, priority in enumerate(["LOW", "NORMAL", "", "HIGH", "LOW", "HIGH"]):
            fields = {"x_juno_priority": priority} if priority else {}
            queue.add(f"{priority or 'NONE'}-{number}", **fields)
    assert served(gateway, "ranked") == [
        "HIGH-3", "HIGH-5", "NORMAL-1", "NONE-2", "LOW-0", "LOW-4"]


@pytest.mark.parametrize("model", CALLERS)
def test_one_caller_does_not_delay_another(gateway: ManagedGateway, model: str) -> None:
    """Behind 40 calls of one, the single call of another waits for two of them at most."""
    many, single = CALLERS[model]
    with held(gateway, model, many) as queue:
        queue.add_many([f"many-{number}" for number in range(40)], many)
        queue.add("single", single)
    assert served(gateway, model).index("single") <= 2


def test_many_callers_take_turns(gateway: ManagedGateway) -> None:
    """Of three callers with four calls each, nobody is served twice before all were once."""
    callers = [("Authorization", f"Bearer {name}") for name in "abc"]
    with held(gateway, "many") as queue:
        for caller in callers:
            queue.add_many([f"{caller[1][-1]}{number}" for number in range(4)], caller)
    order = [name[0] for name in served(gateway, "many")]
    assert [sorted(order[turn:turn + 3]) for turn in (0, 3, 6, 9)] == [["a", "b", "c"]] * 4


def test_urgency_counts_before_fairness(gateway: ManagedGateway) -> None:
    """Inside a priority callers take turns, never across."""
    one, two = CALLERS["by_key"]
    with held(gateway, "mixed") as queue:
        queue.add("low-b", two, x_juno_priority="LOW")
        for number in range(2):
            queue.add(f"high-a{number}", one, x_juno_priority="HIGH")
        queue.add("high-b", two, x_juno_priority="HIGH")
    order = served(gateway, "mixed")
    assert order[-1] == "low-b" and order.index("high-b") <= 1


def test_the_least_urgent_is_served_in_time(start: Start) -> None:
    """Who waits becomes more urgent, so that LOW is served though HIGH calls never end."""
    gateway = start([engine("m", slots=1)], queue={"size": 100, "max-wait": "4s"})
    enough = threading.Event()
    with crowd(gateway.url) as calls:
        busy = [calls.keep_asking("m", "id:high answer:0.05", enough, x_juno_priority="HIGH")
                for _ in range(4)]
        gateway.journal.wait_for("end", "m", "high", count=4)
        asked = time.monotonic()
        succeeds(calls.chat("m", "id:low", x_juno_priority="LOW").result())
        enough.set()
        assert all(future.result() for future in busy)
    served_at = gateway.journal.one("begin", "m", "low").at
    before = [entry for entry in gateway.journal.entries("begin", "m", "high")
              if asked < entry.at < served_at]
    assert len(before) > 5  # more than were waiting when it came: they were more urgent
