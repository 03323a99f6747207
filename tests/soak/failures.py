"""Failures of every kind, many times over: clients that leave and engines that break off."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack

from tests.fakes.engine_steps import reply
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT
from tests.server.stream.leaving import LEAVING, MOMENTS, let_go
from tests.server.stream.worker_facts import WorkerFacts

CROWD, ROUNDS = 10, 10


def failures(gateway: GatewayProcess, engine: RawEngine) -> Iterator[str]:
    """Make each kind of failure a hundred times; its name, once it is over."""
    for name, moment in MOMENTS.items():
        leaves = itertools.cycle(LEAVING.values())
        for _ in range(ROUNDS):
            with moment.crowd(gateway.url, engine, CROWD) as clients:
                for client, leave in zip(clients, leaves):
                    leave(client)
                for connection in engine.connections:
                    wait_until(lambda c=connection: let_go(c), "the engine to be let go", 30)
        yield f"the client leaves {name.replace('_', ' ')}"
    for name, moment in MOMENTS.items():
        for _ in range(ROUNDS):
            with moment.crowd(gateway.url, engine, CROWD) as clients:
                for connection in engine.connections:
                    connection.close(reset=True)
        yield f"the engine breaks off {name.replace('_', ' ')}"


def start_threads(gateway: GatewayProcess, count: int) -> None:
    """Keep so many threads of the worker busy at a time that every one of them has been started."""
    facts = WorkerFacts(gateway)
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(RawClient(gateway.url)).send(
                b"POST /api/show HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        wait_until(lambda: facts.threads() >= count, "the threads to start")


def good_call(gateway: GatewayProcess, engine: RawEngine) -> None:
    """A call without any trouble: what is behind is taken up by then."""
    engine.answer_with(reply())
    assert post(gateway.url, CHAT.path, CHAT.body()).status == 200
