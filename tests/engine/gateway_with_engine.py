"""A gateway in front of the real engine, and a model behind it whose engine is dead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engine.conftest import ALIAS
from tests.engine.engine_process import EngineProcess
from tests.server.gateway_process import GatewayProcess

SHORT = "smol"  # an alias of the demo model
GONE = "gone"   # nothing listens where its engine should


@contextmanager
def gateway_with_engine(
        engine: EngineProcess, home: Path, directory: Path) -> Iterator[GatewayProcess]:
    """A running gateway with the demo registry at `home`; its own files lie in `directory`."""
    settings = {"loop": {
        "home": str(home), "aliases": {SHORT: ALIAS},
        "engines": [{"url": engine.url, "models": [ALIAS]},
                    {"url": "http://127.0.0.1:1", "models": [GONE]}]}}
    with GatewayProcess(directory, settings) as gateway:
        yield gateway
