"""Asking llama-servers for their metrics wakes none, keeps none awake, and waits for none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from app.call import Call
from app.catalog.facts import FactsCache
from app.catalog.registry import Registry
from app.engines.admission import QueueRules
from app.engines.command import Surroundings
from app.engines.fleet import Entry, Fleet, Owners
from app.engines.hangup import Departure
from app.engines.loaded import LoadedModels
from app.engines.own_metrics import OwnMetrics
from app.engines.policy import Policy, PolicyInForce
from app.engines.router import Served
from app.engines.stock import Stock
from app.engines.supervisor import Supervisor
from app.settings import EngineSettings
from tests.fakes.engine_steps import close, refusing_url, reply, silence
from tests.fakes.raw_engine import Exchange, RawEngine, Step
from tests.fakes.registry_home import RegistryHome

PROPS: dict[str, Any] = {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 4}
SAID = b"# TYPE llamacpp:n counter\nllamacpp:n 7\n"


class LlamaServer:
    """What an engine says of itself, and how often it was asked for its metrics."""

    def __init__(self) -> None:
        self.props: Step = reply(200, json.dumps(PROPS).encode())
        self.metrics: Step = reply(200, SAID)
        self.asked = 0

    def __call__(self, exchange: Exchange) -> None:
        if exchange.request.line.startswith("GET /metrics "):
            self.asked += 1
            self.metrics(exchange)
        else:
            self.props(exchange)


class Watched:
    """An attached engine with the models m and n, and one where nothing listens."""

    def __init__(self, url: str, home: RegistryHome) -> None:
        registry = Registry(home.path)
        policy = PolicyInForce(Policy(QueueRules(8, 5.0), 300, None, 5.0))
        stock = Stock(policy, connections=1)
        engine, dead = (
            EngineSettings(each, (), connect_timeout=1.0, read_timeout=1.0)
            for each in (url, refusing_url()))
        self.engine = stock.engine(engine)
        self.now = datetime(2026, 10, 3, tzinfo=timezone.utc)
        self._used = LoadedModels(policy.keep_alive, lambda: self.now)
        fleet = Fleet([Entry(Served(("m", "n")), engine), Entry(Served(("dead",)), dead)],
                      Owners(stock, Supervisor(policy)),
                      Surroundings(registry, FactsCache(), home.path, 1))
        self._own = OwnMetrics(lambda: fleet, self._used)

    def texts(self) -> list[tuple[str, str, str]]:
        """What is told of engines."""
        return [(each.engine, each.model, each.text) for each in self._own.texts()]

    @contextmanager
    def in_use(self, model: str = "m") -> Iterator[None]:
        """A call of the model, from its begin to its end."""
        call = Call("/v1/chat/completions", model, None, "id")  # type: ignore[arg-type]
        self.now += timedelta(seconds=1)
        with self.engine.admission.entered(call, Departure(None)):
            self._used.touch(model)
            yield

    def use(self, model: str = "m") -> None:
        """One call of the model."""
        with self.in_use(model):
            pass


@pytest.fixture
def llama() -> LlamaServer:
    """What the engine says."""
    return LlamaServer()


@pytest.fixture
def watched(llama: LlamaServer, registry_home: RegistryHome) -> Iterator[Watched]:
    """The engine, not used yet."""
    with RawEngine(reply()) as engine:
        engine.probe_script = llama
        yield Watched(engine.url, registry_home)


def test_an_engine_is_asked_once_after_each_use(watched: Watched, llama: LlamaServer) -> None:
    """Before it was used nobody knows what it has loaded; afterwards nothing of it changes."""
    assert watched.texts() == [] and llama.asked == 0
    for count, model in enumerate(["m", "n", "m"], start=1):
        watched.use(model)
        for _ in range(3):
            assert watched.texts() == [(watched.engine.address, model, SAID.decode())]
        assert llama.asked == count


def test_an_engine_at_work_is_asked_each_time(watched: Watched, llama: LlamaServer) -> None:
    """Its numbers change then, and it cannot be asleep; and once more behind the work."""
    with watched.in_use():
        assert [len(watched.texts()) for _ in range(3)] == [1, 1, 1]
    assert [len(watched.texts()) for _ in range(3)] == [1, 1, 1]
    assert llama.asked == 4


@pytest.mark.parametrize("props", [
    reply(200, json.dumps({**PROPS, "is_sleeping": True}).encode()), reply(404, b"{}"),
    reply(200, b'{"models": []}'), reply(503, b"{}"), silence, close])
def test_who_sleeps_or_is_none_is_not_asked(
        watched: Watched, llama: LlamaServer, props: Step) -> None:
    """GET /props tells that, and is no work for a llama-server."""
    llama.props = props
    watched.use()
    assert watched.texts() == [] and llama.asked == 0


@pytest.mark.parametrize("metrics", [reply(501, b"{}"), reply(404, b"{}"), reply(200, b"")])
def test_who_has_none_is_not_asked_again(
        watched: Watched, llama: LlamaServer, metrics: Step) -> None:
    """Until it is used."""
    llama.metrics = metrics
    watched.use()
    assert [watched.texts() for _ in range(3)] == [[], [], []] and llama.asked == 1


@pytest.mark.parametrize("metrics", [silence, close])
def test_who_does_not_answer_is_asked_again(
        watched: Watched, llama: LlamaServer, metrics: Step) -> None:
    """It was busy: what it said before is not told in its place."""
    watched.use()
    assert len(watched.texts()) == 1
    watched.use()
    llama.metrics = metrics
    assert watched.texts() == []
    llama.metrics = reply(200, SAID)
    assert len(watched.texts()) == 1 and llama.asked >= 3


def test_an_engine_that_was_long_idle_is_not_told_of(watched: Watched) -> None:
    """Nobody knows whether it still has the model, or is the one that it was."""
    watched.use()
    watched.now += timedelta(seconds=299)
    assert len(watched.texts()) == 1
    watched.now += timedelta(seconds=2)
    assert watched.texts() == []


def test_a_dead_engine_holds_up_nobody(watched: Watched) -> None:
    """The others are told."""
    watched.use()
    watched.use("dead")
    assert [each[1] for each in watched.texts()] == ["m"]
