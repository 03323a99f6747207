"""Calls that broke off leave nothing in the worker: no thread, no socket, no word in its log."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.calls import post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT
from tests.server.stream.conftest import settings_for
from tests.server.stream.leaving import LEAVING, MOMENTS, Moment, let_go
from tests.server.stream.worker_facts import WorkerFacts

CROWD, ROUNDS = 10, 5
PLACES = 2 * CROWD  # a place is free a moment after its client has left
RESERVE = 16  # threads beside server.threads, as docs/architecture.md says


@dataclass(frozen=True)
class Tidy:
    """A gateway and what its worker held before the first departure."""

    gateway: GatewayProcess
    facts: WorkerFacts
    threads: int
    descriptors: int

    def is_as_before(self, engine: RawEngine) -> None:
        """Serve one more call and find no thread and no socket more than in the beginning."""
        one_call(self.gateway, engine)
        wait_until(lambda: self.facts.descriptors() <= self.descriptors,
                   f"{self.facts.descriptors()} descriptors to be {self.descriptors} again", 5)
        assert self.facts.threads() <= self.threads
        assert "Traceback" not in self.gateway.log()


@pytest.fixture(scope="module")
def tidy(shared_engine: RawEngine, stream_home: RegistryHome,
         tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tidy]:
    """A gateway all of whose threads have been started, and that keeps one idle connection."""
    settings = settings_for(shared_engine, stream_home, {"threads": PLACES},
                            **{"read-timeout": "5m", "connect-timeout": "5m"})
    with GatewayProcess(tmp_path_factory.mktemp("tidy"), settings) as gateway:
        facts = WorkerFacts(gateway)
        start_threads(gateway, facts)
        one_call(gateway, shared_engine)
        threads, descriptors = facts.threads(), facts.descriptors()
        yield Tidy(gateway, facts, threads + 1, descriptors)


def start_threads(gateway: GatewayProcess, facts: WorkerFacts) -> None:
    """Keep so many threads busy at a time that every thread of the pool has been started."""
    with ExitStack() as stack:
        for _ in range(PLACES + RESERVE):
            stack.enter_context(RawClient(gateway.url)).send(
                b"POST /api/show HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        wait_until(lambda: facts.threads() >= PLACES + RESERVE, "the threads to start", 10)


def one_call(gateway: GatewayProcess, engine: RawEngine) -> None:
    """A call without any trouble."""
    engine.answer_with(reply())
    assert post(gateway.url, CHAT.path, CHAT.body()).status == 200


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_nothing_is_left_of_a_crowd_that_leaves(
        tidy: Tidy, engine: RawEngine, moment: Moment) -> None:
    """Fifty clients that leave at this moment: threads and sockets are what they were."""
    log = tidy.gateway.log()
    leaves = itertools.cycle(LEAVING.values())
    for _ in range(ROUNDS):
        with moment.crowd(tidy.gateway.url, engine, CROWD) as clients:
            for client, leave in zip(clients, leaves):
                leave(client)
            for connection in engine.connections:
                wait_until(lambda c=connection: let_go(c), "the engine to be let go", 5)
    tidy.is_as_before(engine)
    assert tidy.gateway.log() == log


@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "whole"])
def test_nothing_is_left_of_a_crowd_that_stays(
        tidy: Tidy, engine: RawEngine, streaming: bool) -> None:
    """Fifty answers that the engine breaks off leave no dead connection behind."""
    moment = MOMENTS["mid_stream" if streaming else "whole_in_the_body"]
    for _ in range(ROUNDS):
        with moment.crowd(tidy.gateway.url, engine, CROWD) as clients:
            for connection in engine.connections:
                connection.close()
            answers = [] if streaming else [client.answer() for client in clients]
            assert [answer.status for answer in answers] == [502] * len(answers)
    tidy.is_as_before(engine)
