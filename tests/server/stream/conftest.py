"""Gateways for the tests of streams: an impatient one, and one that waits for the test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.shipped_nginx import ShippedNginx

LONG_NAME = "example-org/Tiny-Coder-GGUF:F32"


@pytest.fixture(scope="package")
def stream_home(tmp_path_factory: pytest.TempPathFactory) -> RegistryHome:
    """A registry of two models that the scripted engine serves, one with a slash and a colon."""
    home = RegistryHome(tmp_path_factory.mktemp("streams") / "home")
    home.add("m")
    home.add(LONG_NAME)
    return home


def settings_for(engine: RawEngine, home: RegistryHome, server: dict[str, Any],
                 **loop: Any) -> dict[str, Any]:
    """The configuration of a gateway before this engine; `gone` has a dead one."""
    engines = [{"url": engine.url, "models": ["m", LONG_NAME]},
               {"url": "http://127.0.0.1:1", "models": ["gone"]}]
    return {"server": server, "loop": {
        "home": str(home.path), "aliases": {"short": "m"}, "engines": engines, **loop}}


@pytest.fixture(scope="package")
def gateway(shared_engine: RawEngine, stream_home: RegistryHome,
            tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that gives up on a silent engine after a second."""
    settings = settings_for(shared_engine, stream_home, {"threads": 32}, **{"read-timeout": "1s"})
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as process:
        yield process


@pytest.fixture(scope="package")
def patient(shared_engine: RawEngine, stream_home: RegistryHome,
            tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway that waits longer than any test, so that only a departure can end a call."""
    settings = settings_for(shared_engine, stream_home, {"threads": 32, "write-timeout": "5m"},
                            **{"read-timeout": "5m", "connect-timeout": "5m"})
    with GatewayProcess(tmp_path_factory.mktemp("patient"), settings) as process:
        yield process


@pytest.fixture(scope="package")
def nginx(patient: GatewayProcess,
          tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShippedNginx]:
    """The nginx configuration of the project before the patient gateway."""
    with ShippedNginx(tmp_path_factory.mktemp("nginx"), patient.port) as process:
        yield process
