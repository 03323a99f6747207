"""Engines end when they have been idle for a time, counted from the end of their last call."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest

from tests.fakes.raw_client import RawAnswer
from tests.fakes.registry_home import LLAMA
from tests.server.calls import post
from tests.server.engines.calling import (
    EMBED, GENERATE, OLLAMA, body, chat, ollama, streams_whole, succeeds, together,
)
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine

KEEP = 0.5  # seconds


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway that keeps an idle engine for half a second."""
    return start([
        engine("talker"), engine("slow", "--load", "1.0"), engine("busy"), engine("mark"),
        engine([f"kept-{number}" for number in range(len(KEPT))]),
        engine(["ever", "generate-ever"]), engine("pinned", pinned=True),
    ], **{"keep-alive": f"{KEEP * 1000:.0f}ms"})


def idle(gateway: ManagedGateway, model: str) -> float:
    """Seconds from the end of the model's last call to the end of its engine."""
    ended = gateway.journal.one("terminated", model).at
    return ended - gateway.journal.entries("end", model)[-1].at


def outlives_others(gateway: ManagedGateway, model: str) -> None:
    """Assert that the model's engine is there though one that was used later has ended."""
    before = len(gateway.journal.entries("terminated", "mark"))
    succeeds(chat(gateway.url, "mark"))
    gateway.journal.wait_for("terminated", "mark", count=before + 1)
    assert gateway.engine(model)["state"] == "ready"
    assert not gateway.journal.entries("terminated", model)


def test_idleness_counts_from_the_end_of_a_stream(gateway: ManagedGateway) -> None:
    """A stream longer than the limit is not cut, and the engine stays for the limit after it."""
    answer = chat(gateway.url, "talker", f"answer:{KEEP * 3} events:6", stream=True)
    assert len(streams_whole(answer)) == 6
    assert idle(gateway, "talker") >= KEEP * 0.9
    assert gateway.wait_for_state("talker", "stopped")["pid"] is None


def test_a_slow_start_is_not_idleness(gateway: ManagedGateway) -> None:
    """A start that takes longer than the limit ends with the answer."""
    succeeds(chat(gateway.url, "slow"))
    assert len(gateway.journal.entries("started", "slow")) == 1
    assert idle(gateway, "slow") >= KEEP * 0.9


def test_each_call_begins_the_time_anew(gateway: ManagedGateway) -> None:
    """An engine that is asked now and then goes on."""
    until = time.monotonic() + 2.5 * KEEP
    while time.monotonic() < until:
        succeeds(chat(gateway.url, "busy", f"answer:{KEEP / 5}"))
    assert len(gateway.journal.entries("started", "busy")) == 1


KEPT: list[tuple[str, Any]] = [
    (OLLAMA, "1200ms"), (OLLAMA, 1.2), (GENERATE, "1200ms"), (EMBED, "1200ms")]


def test_a_request_may_say_how_long(gateway: ManagedGateway) -> None:
    """Seconds and durations, on each route, from the end of its answer; all at once."""
    def ask(number: int) -> RawAnswer:
        path, keep = KEPT[number]
        fields = body(f"kept-{number}", stream=False, keep_alive=keep)
        return post(gateway.url, path, {**fields, "prompt": "id:x", "input": "id:x"})
    for answer in together(*[partial(ask, number) for number in range(len(KEPT))]):
        succeeds(answer)
    for number in range(len(KEPT)):
        assert idle(gateway, f"kept-{number}") >= 1.1


@pytest.mark.parametrize("model", ["ever", "generate-ever"])
def test_a_request_may_say_for_ever(gateway: ManagedGateway, model: str) -> None:
    """Until another one says something else."""
    if model == "ever":
        succeeds(ollama(gateway.url, model, keep_alive=-1))
    else:
        succeeds(post(gateway.url, GENERATE, {"model": model, "keep_alive": "-1m"}))
    outlives_others(gateway, model)
    assert gateway.engine(model)["idle_until"] is None
    succeeds(ollama(gateway.url, model))
    gateway.journal.one("terminated", model)


def test_a_pinned_engine_stays(gateway: ManagedGateway) -> None:
    """It is not stopped for idleness, nor by an answer that is to be its last."""
    succeeds(ollama(gateway.url, "pinned", keep_alive=0))
    outlives_others(gateway, "pinned")
    assert gateway.engine("pinned")["idle_until"] is None


def test_preloaded_engines_need_no_call(start: Start) -> None:
    """Every model that the entry's globs fit is started with the gateway."""
    files = {"model.gguf": LLAMA}
    gateway = start([engine("org/*", preload=True), engine("idle")],
                    models={"org/a": files, "org/b:Q4_0": files})
    for model in "org/a", "org/b:Q4_0":
        assert gateway.wait_for_state(model, "ready")["starts"] == 1
    assert {entry.model for entry in gateway.journal.entries()} == {"org/a", "org/b:Q4_0"}
