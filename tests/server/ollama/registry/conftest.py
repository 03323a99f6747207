"""A gateway whose registry clients change, between a hub on loopback and an engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from ollama import Client

from tests.fakes.engine_steps import reply
from tests.fakes.hub import FakeHub, fake_hub
from tests.fakes.model_files import TALK
from tests.fakes.raw_engine import Exchange, RawEngine
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.engine_answers import LLAMA_ROUTES, routed
from tests.server.ollama.registry.asking import Registered

PROPS = json.dumps({
    "default_generation_settings": {"n_ctx": 2048, "params": {}}, "total_slots": 4,
    "chat_template": TALK, "chat_template_caps": {"supports_tools": False},
    "modalities": {"vision": False, "audio": False}, "bos_token": "<s>"}).encode()


def _says_what_it_is(exchange: Exchange) -> None:
    """As a llama-server that has whatever model it is asked about."""
    props = exchange.request.path.startswith("/props")
    reply(200, PROPS if props else b'{"status":"ok"}')(exchange)


@pytest.fixture(scope="package")
def running_hub() -> Iterator[FakeHub]:
    """One hub for all tests; tests take `hub`."""
    with fake_hub() as running:
        yield running


@pytest.fixture
def hub(running_hub: FakeHub) -> FakeHub:
    """A hub without repositories, that was asked nothing yet."""
    for what in (running_hub.repos, running_hub.faults, running_hub.requests):
        what.clear()
    return running_hub


@pytest.fixture(scope="package")
def running_engine() -> Iterator[RawEngine]:
    """The engine of all models; tests take `engine`."""
    with RawEngine(routed(LLAMA_ROUTES)) as engine:
        engine.probe_script = _says_what_it_is
        yield engine


@pytest.fixture
def engine(running_engine: RawEngine) -> Iterator[RawEngine]:
    """It, without memory of other tests."""
    running_engine.answer_with(routed(LLAMA_ROUTES))
    yield running_engine
    running_engine.raise_failures()


@pytest.fixture(scope="package")
def running_gateway(running_hub: FakeHub, running_engine: RawEngine,
                    tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """The gateway of all tests; its body limit is smaller than any model."""
    home = tmp_path_factory.mktemp("registry") / "home"
    settings = {
        "server": {"max-body": "2KiB", "body-timeout": "1s", "threads": 8},
        "loop": {"home": str(home), "aliases": {"nick": "org/x"}, "engines": [
            {"url": running_engine.url, "models": ["*"]}]}}
    environment = {"HF_ENDPOINT": running_hub.url, "NO_PROXY": "127.0.0.1,localhost"}
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings, environment) as gateway:
        yield gateway


@pytest.fixture
def served(running_gateway: GatewayProcess) -> Iterator[Registered]:
    """The gateway and its registry, in which there is nothing at first."""
    registered = Registered(running_gateway.url, Path(running_gateway.settings["loop"]["home"]))
    registered.clear()
    yield registered
    assert registered.is_sound()


@pytest.fixture
def client(served: Registered) -> Iterator[Client]:
    """The official client of the gateway."""
    with Client(served.url) as client:
        yield client
