"""Fixtures around a real gateway: one for all tests, and a way to start others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.gateway_process import GatewayProcess
from tests.server.nginx_process import NginxProcess
from tests.server.served_registry import GOOD, Served

StartGateway = Callable[[dict[str, Any]], GatewayProcess]
StartNginx = Callable[[str], NginxProcess]


@pytest.fixture(scope="session")
def shared_engine() -> Iterator[RawEngine]:
    """The scripted engine behind the shared gateway; tests take `engine` instead."""
    with RawEngine(reply()) as engine:
        yield engine


@pytest.fixture
def engine(shared_engine: RawEngine) -> Iterator[RawEngine]:
    """The scripted engine behind the shared gateway, without memory of other tests."""
    shared_engine.answer_with(reply())
    yield shared_engine
    shared_engine.raise_failures()


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> RegistryHome:
    """The registry of the shared gateway: `m`, which its engine serves, and no other model."""
    home = RegistryHome(tmp_path_factory.mktemp("shared") / "home")
    home.add("m")
    return home


@pytest.fixture(scope="session")
def gateway(shared_engine: RawEngine, shared_home: RegistryHome,
            tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway for all tests: model `m`, alias `short` of it, `gone` with a dead engine."""
    settings = {"loop": {
        "home": str(shared_home.path), "read-timeout": "1s", "aliases": {"short": "m"},
        "engines": [{"url": shared_engine.url, "models": ["m"]},
                    {"url": "http://127.0.0.1:1", "models": ["gone"]}]}}
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as process:
        yield process


@pytest.fixture(scope="module")
def start_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartGateway]:
    """A function that starts a gateway with the given configuration; stopped with the module."""
    with ExitStack() as stack:
        yield lambda settings: stack.enter_context(
            GatewayProcess(tmp_path_factory.mktemp("gateway"), settings))


@pytest.fixture(scope="module")
def start_nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartNginx]:
    """A function that starts nginx with the given server block; stopped with the module."""
    with ExitStack() as stack:
        yield lambda server: stack.enter_context(
            NginxProcess(tmp_path_factory.mktemp("nginx"), server))


@pytest.fixture(scope="session")
def shared_served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The one registry for tests of listings; tests take `served`."""
    home = RegistryHome(tmp_path_factory.mktemp("listing") / "home")
    for name in GOOD:
        home.add(name)
    settings = {"loop": {"home": str(home.path), "engines": [
        {"url": "http://127.0.0.1:1", "models": ["*"]}]}}
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as gateway:
        yield Served(home, gateway)


@pytest.fixture
def served(shared_served: Served) -> Iterator[Served]:
    """A registry behind a gateway; whatever a test adds to it is gone afterwards."""
    before = set(os.listdir(os.fsencode(shared_served.home.models)))
    yield shared_served
    shared_served.clean(before)
