"""What is counted goes on counting when the configuration changes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from hashlib import sha256
from typing import Any

import pytest

from tests.fakes.engine_steps import hold, reply, send, whole
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawAnswer
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import get
from tests.server.engines.calling import Crowd, chat, crowd, succeeds
from tests.server.gateway_process import GatewayProcess
from tests.server.running.changing import reload

KEY = [("Authorization", "Bearer ann")]
ANN = {"name": "ann", "sha256": sha256(b"ann").hexdigest(), "rate": "5/day", "concurrency": 2}


@pytest.fixture
def own_engine() -> Iterator[RawEngine]:
    """An engine of the test's own."""
    with RawEngine(reply()) as engine:
        yield engine


def entry(engine: RawEngine, slots: int) -> dict[str, object]:
    """An entry of `loop.engines` for `m`."""
    return {"url": engine.url, "models": ["m"], "kind": "openai", "slots": slots}


def series(gateway: GatewayProcess) -> dict[str, float]:
    """Each line of GET /metrics by its name and labels; no line may be there twice."""
    lines = [line for line in get(gateway.url, "/metrics").body.decode().splitlines()
             if not line.startswith("#")]
    found = dict(line.rsplit(" ", 1) for line in lines)
    assert len(found) == len(lines), lines
    return {name: float(value) for name, value in found.items()}


def test_metrics_go_on(tmp_path_factory: pytest.TempPathFactory, own_engine: RawEngine) -> None:
    """Also while an engine leaves and another one is there at the same address."""
    gate = threading.Event()
    counted = 'loop_calls_total{model="m",route="/v1/chat/completions",status="200"}'
    settings = {"loop": {"engines": [entry(own_engine, 1)]}}
    with GatewayProcess(tmp_path_factory.mktemp("metrics"), settings) as gateway, \
            crowd(gateway.url) as calls:
        succeeds(chat(gateway.url, "m"))
        own_engine.answer_with([hold(gate), send(whole())])
        held = begun(calls, own_engine)
        for slots in (2, 3):
            reload(gateway, engines=[entry(own_engine, slots)])
        wait_until(lambda: series(gateway)[counted] == 1, "the first call to be counted")
        states = [name for name in series(gateway) if name.startswith("loop_engine_calls{")]
        assert len(states) == 2
        gate.set()
        succeeds(held.result())
        succeeds(chat(gateway.url, "m"))
        wait_until(lambda: series(gateway)[counted] == 3, "both calls to be counted")


def begun(calls: Crowd, engine: RawEngine, **more: Any) -> Future[RawAnswer]:
    """A call that the engine has."""
    made = calls.chat("m", **more)
    engine.wait_for_requests(1)
    return made


def test_limits_of_keys_go_on(tmp_path_factory: pytest.TempPathFactory, own_engine: RawEngine,
                              ) -> None:
    """Calls that run, and requests of the day, count for the key as before."""
    gate = threading.Event()
    settings = {"keys": [ANN], "loop": {"engines": [entry(own_engine, 4)]}}
    with GatewayProcess(tmp_path_factory.mktemp("keys"), settings) as gateway, \
            crowd(gateway.url) as calls:
        own_engine.answer_with([hold(gate), send(whole())])
        held = [begun(calls, own_engine, headers=KEY) for _ in range(2)]
        own_engine.wait_for_requests(2)
        reload(gateway, aliases={"x": "m"})
        assert chat(gateway.url, "m", headers=KEY).status == 429
        gate.set()
        for each in held:
            succeeds(each.result())
        left = [chat(gateway.url, "m", headers=KEY).status for _ in range(3)]
        assert left == [200, 200, 429]
