"""A gateway between Ollama's clients and two scripted engines: a llama-server and another make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.processes import wait_until
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.calls import SHOW, post
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.engine_answers import LLAMA_ROUTES, OPENAI_ROUTES, routed
from tests.server.ollama.served_models import GONE, LLAMA, NICK, OTHER, PULLED, probed

REFUSING = "http://127.0.0.1:1"
THREADS = 32  # so many calls at a time, and no more


@pytest.fixture(scope="package")
def llama_server() -> Iterator[RawEngine]:
    """The engine that says what it is; tests take `engine`."""
    with RawEngine(routed(LLAMA_ROUTES)) as engine:
        engine.probe_script = probed
        yield engine


@pytest.fixture(scope="package")
def openai_server() -> Iterator[RawEngine]:
    """The engine of which nothing is known; tests take `other`."""
    with RawEngine(routed(OPENAI_ROUTES)) as engine:
        yield engine


@pytest.fixture
def engine(llama_server: RawEngine) -> Iterator[RawEngine]:
    """The scripted llama-server, without memory of other tests."""
    llama_server.answer_with(routed(LLAMA_ROUTES))
    yield llama_server
    llama_server.raise_failures()


@pytest.fixture
def other(openai_server: RawEngine) -> Iterator[RawEngine]:
    """The scripted engine of another make, without memory of other tests."""
    openai_server.answer_with(routed(OPENAI_ROUTES))
    yield openai_server
    openai_server.raise_failures()


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory) -> RegistryHome:
    """A registry of all the models."""
    found = RegistryHome(tmp_path_factory.mktemp("ollama") / "home")
    for name, model in PULLED.items():
        found.add_files(name, model.files, quant="")
    return found


@pytest.fixture(scope="package")
def settings(llama_server: RawEngine, openai_server: RawEngine,
             home: RegistryHome) -> dict[str, Any]:
    """The configuration of a gateway before both engines; that of `gone` is dead."""
    return {"server": {"threads": THREADS}, "loop": {
        "home": str(home.path), "aliases": {NICK: "org/x"}, "engines": [
            {"url": llama_server.url, "models": list(LLAMA)},
            {"url": openai_server.url, "models": [OTHER]},
            {"url": REFUSING, "models": [GONE]}]}}


def _with(settings: dict[str, Any], **loop: Any) -> dict[str, Any]:
    return {**settings, "loop": {**settings["loop"], **loop}}


def _learn(url: str) -> None:
    """Let the gateway hear of every model what its engine says of it: a busy machine is slow."""
    for name in LLAMA:
        wait_until(lambda: post(url, SHOW, {"model": name}).json()["parameters"],
                   f"the engine's word of {name}")


@pytest.fixture(scope="package")
def gateway(settings: dict[str, Any],
            tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that gives up on a silent engine after a second."""
    impatient = _with(settings, **{"read-timeout": "1s"})
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), impatient) as process:
        _learn(process.url)
        yield process


@pytest.fixture(scope="package")
def patient(settings: dict[str, Any],
            tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that waits longer than any test, so that only a departure can end a call."""
    waiting = _with(settings, **{"read-timeout": "5m", "connect-timeout": "5m"})
    with GatewayProcess(tmp_path_factory.mktemp("patient"), waiting) as process:
        _learn(process.url)
        yield process
