"""Engines start at the first call for their model, once, and calls wait until they are ready."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.model_files import projector
from tests.fakes.raw_client import RawAnswer
from tests.fakes.registry_home import LLAMA
from tests.server.calls import get, post
from tests.server.engines.calling import (
    GENERATE, OLLAMA, PS, chat, crowd, ollama, streams_whole, succeeds, together, unload,
)
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine

GLOBBED = "org/one:Q8_0"
SEER = {"seer-00001-of-00002.gguf": LLAMA, "seer-00002-of-00002.gguf": LLAMA + b"\0",
        "mmproj.gguf": projector(vision=True)}
TEMPLATE = ["--file", "{file}", "--slots-of", "{slots}", "--see", "{projector}", "--x={model}={y}"]


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway with a model for each test."""
    return start([
        engine("many", "--load", "0.4"), engine("untouched"), engine("slow", "--load", "0.7"),
        engine("quick"), engine(["early", "early-stream"], "--loading", "--load", "0.4"),
        engine("plain", "--load", "0.3", "--no-health"), engine("org/*"),
        engine("loud", "--chatter", "400000"),
        engine("filled", *TEMPLATE, slots=3), engine("seer", *TEMPLATE),
        engine([f"route-{number}" for number in range(len(ROUTES))]),
    ], models={GLOBBED: {"model.gguf": LLAMA}, "seer": SEER})


@pytest.mark.parametrize("path", [
    "/v1/models", "/v1/models/untouched", "/api/tags", PS, "/engines", "/health", "/api/show"])
def test_nothing_starts_before_the_first_call(gateway: ManagedGateway, path: str) -> None:
    """Whoever only asks what there is starts no engine."""
    show = path == "/api/show"
    answer = post(gateway.url, path, {"model": "untouched"}) if show else get(gateway.url, path)
    assert answer.status == 200, answer.body
    assert gateway.engine("untouched")["state"] == "stopped"
    assert not gateway.journal.entries(model="untouched")


def test_ten_callers_are_one_start(gateway: ManagedGateway) -> None:
    """They come at the same moment, of both APIs and with streams, and all are answered."""
    kinds: list[Callable[[], RawAnswer]] = [
        lambda: chat(gateway.url, "many"), lambda: chat(gateway.url, "many", stream=True),
        lambda: ollama(gateway.url, "many"), lambda: ollama(gateway.url, "many", stream=True)]
    for answer in together(*kinds, *kinds, *kinds[:2]):
        succeeds(answer)
    assert len(gateway.journal.entries("started", "many")) == 1
    assert gateway.engine("many")["starts"] == 1


ROUTES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "id:x"}]}),
    "embeddings": ("/v1/embeddings", {"input": "id:x"}),
    "ollama_chat": (OLLAMA, {"messages": [{"role": "user", "content": "id:x"}]}),
    "ollama_load": (GENERATE, {}),
    "tokenize": ("/tokenize", {"content": "x"}),
}


@pytest.mark.parametrize(("number", "route"), list(enumerate(ROUTES)), ids=ROUTES)
def test_calls_of_every_kind_start_it(gateway: ManagedGateway, number: int, route: str) -> None:
    """Loading by Ollama's API among them."""
    path, fields = ROUTES[route]
    model = f"route-{number}"
    assert post(gateway.url, path, {"model": model, **fields}).status == 200
    gateway.journal.one("ready", model)
    assert gateway.engine(model)["state"] == "ready"


def test_it_runs_on_every_cpu(gateway: ManagedGateway) -> None:
    """Its gateway keeps to one of them."""
    every = os.sched_getaffinity(0)
    succeeds(chat(gateway.url, "quick"))
    [worker], [program] = gateway.workers(), gateway.programs("quick")
    assert os.sched_getaffinity(program) == every
    assert len(os.sched_getaffinity(worker)) == 1


def test_a_glob_gives_each_model_an_engine(gateway: ManagedGateway) -> None:
    """Which is told the name of the registry."""
    succeeds(chat(gateway.url, GLOBBED.upper()))
    assert gateway.journal.one("ready", GLOBBED)


def test_others_are_answered_meanwhile(gateway: ManagedGateway) -> None:
    """An engine that takes long to start holds up nobody else."""
    succeeds(chat(gateway.url, "quick"))
    with crowd(gateway.url) as calls:
        waiting = calls.chat("slow")
        gateway.journal.wait_for("started", "slow")
        for _ in range(3):
            succeeds(chat(gateway.url, "quick", "id:meanwhile"))
        assert get(gateway.url, "/health").status == 200
        succeeds(waiting.result())
    served = gateway.journal.entries("end", "quick", "meanwhile")
    assert all(entry.at < gateway.journal.one("ready", "slow").at for entry in served)


@pytest.mark.parametrize("model", ["early", "early-stream", "plain"])
def test_a_call_waits_until_the_model_is_loaded(gateway: ManagedGateway, model: str) -> None:
    """Also where the engine answers before, and where it has no /health."""
    stream = model == "early-stream"
    answer = succeeds(chat(gateway.url, model, "id:first", stream=stream))
    assert not stream or streams_whole(answer)
    [begun] = gateway.journal.entries("begin", model)
    assert begun.at > gateway.journal.one("ready", model).at


def arguments(gateway: ManagedGateway, model: str) -> list[str]:
    """The last arguments of an engine whose command ends with the TEMPLATE."""
    succeeds(chat(gateway.url, model))
    found: list[str] = gateway.journal.one("started", model).more["arguments"]
    return found[found.index("--file"):]


def test_the_command_is_filled_in(gateway: ManagedGateway) -> None:
    """File, slots, projector and name; other braces stay."""
    folder = gateway.home / "models"
    assert arguments(gateway, "filled") == [
        "--file", str(folder / "filled" / "model.gguf"), "--slots-of", "3", "--see", "",
        "--x=filled={y}"]
    assert arguments(gateway, "seer") == [
        "--file", str(folder / "seer" / "seer-00001-of-00002.gguf"), "--slots-of", "4",
        "--see", str(folder / "seer" / "mmproj.gguf"), "--x=seer={y}"]


def test_the_gateways_own_variables_stay_with_it(gateway: ManagedGateway) -> None:
    """An engine is not told the gateway's configuration, in which keys may be."""
    succeeds(chat(gateway.url, "quick"))
    variables = gateway.journal.entries("started", "quick")[0].more["variables"]
    assert [name for name in variables if not name.startswith("LOOP_ENGINE_")] == []


def test_what_an_engine_writes_is_kept(gateway: ManagedGateway) -> None:
    """However much it is, in a file made anew at each start; the one before is kept."""
    log = gateway.home / "logs" / "engines" / "loud.log"
    before = log.with_name("loud.log.1")
    succeeds(chat(gateway.url, "loud"))
    assert log.read_bytes().startswith(b"chatter\nchatter\n") and not before.exists()
    size = log.stat().st_size
    assert size >= 400000
    assert unload(gateway.url, "loud").status == 200
    gateway.wait_for_state("loud", "stopped")
    succeeds(chat(gateway.url, "loud"))
    assert [log.stat().st_size, before.stat().st_size] == [size, size]
