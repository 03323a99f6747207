"""A gateway that waits longer than any test, beside the shared one that gives up after a second."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.gateway_process import GatewayProcess


@pytest.fixture(scope="package")
def patient(shared_engine: RawEngine, shared_home: RegistryHome,
            tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway whose calls only a departure can end."""
    settings = {"loop": {"home": str(shared_home.path), "read-timeout": "5m", "engines": [
        {"url": shared_engine.url, "models": ["m"]}]}}
    with GatewayProcess(tmp_path_factory.mktemp("patient"), settings) as process:
        yield process
