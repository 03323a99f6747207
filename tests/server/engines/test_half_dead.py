"""Of two engines for one model one is dead and the other full: that is a queue, not a failure."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.fakes.engine_steps import hold, refusing_url, reply
from tests.fakes.processes import wait_until
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import openai_error
from tests.server.engines.calling import chat, crowd, retry_after, succeeds
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, attached, engine

WAITING = 2  # calls that may wait at the engine that lives


class Side(NamedTuple):
    """A gateway before a dead engine and one that answers a call at a time."""

    gateway: ManagedGateway
    living: RawEngine


@pytest.fixture
def living() -> Iterator[RawEngine]:
    """The engine that lives."""
    with RawEngine(reply()) as engine:
        yield engine


@pytest.fixture(params=["dead_first", "dead_last", "dead_of_ours"])
def side(request: pytest.FixtureRequest, start: Start, living: RawEngine) -> Side:
    """The dead engine refuses connections, or is a program that ends at its start."""
    lives = attached(living.url, "m", slots=1)
    dead = attached(refusing_url(), "m", slots=1)
    entries = {"dead_first": [dead, lives], "dead_last": [lives, dead],
               "dead_of_ours": [engine("m", "--exit", "3", slots=1), lives]}
    return Side(start(entries[request.param], **{
        "probe-interval": "1h", "queue": {"size": WAITING, "max-wait": "1m"}}), living)


def queued(side: Side) -> int:
    """How many calls wait for the engine that lives."""
    return sum(entry["queued"] for entry in side.gateway.engines()["engines"]
               if entry["id"] == side.living.url)


def test_a_call_waits_for_the_engine_that_lives(side: Side) -> None:
    """Or is told when to come back where too many do; nobody hears of the dead one."""
    go = threading.Event()
    side.living.answer_with([hold(go), reply()])
    with crowd(side.gateway.url) as calls:
        running = calls.chat("m", "id:0")
        side.living.wait_for_requests(1)
        waiting = [calls.chat("m", f"id:{number + 1}") for number in range(WAITING)]
        wait_until(lambda: queued(side) == WAITING, "the queue to be full")
        for number in range(3):
            full = chat(side.gateway.url, "m", f"topic {number}")
            assert full.status == 429 and retry_after(full) >= 1, full.body
            assert openai_error(full)["code"] == "rate_limit_exceeded"
        go.set()
        for answer in (running, *waiting):
            succeeds(answer.result())
    assert len(side.living.requests) == 1 + WAITING


def test_a_wait_in_vain_is_a_429_too(start: Start, living: RawEngine) -> None:
    """Where the living engine has no time within the longest wait."""
    entries = [attached(refusing_url(), "m", slots=1), attached(living.url, "m", slots=1)]
    gateway = start(entries, queue={"max-wait": "300ms"})
    go = threading.Event()
    living.answer_with([hold(go), reply()])
    with crowd(gateway.url) as calls:
        running = calls.chat("m")
        living.wait_for_requests(1)
        for _ in range(2):
            late = chat(gateway.url, "m")
            assert late.status == 429 and retry_after(late) >= 1, late.body
        go.set()
        succeeds(running.result())
