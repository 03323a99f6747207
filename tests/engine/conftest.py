"""Fixtures around the real llama.cpp engine and the demo model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.launcher.demo import install
from tests.engine.engine_process import EngineProcess

ROOT = Path(__file__).resolve().parents[2]
ALIAS = "HuggingFaceTB/SmolLM2-135M-Instruct-GGUF:Q4_1"


@pytest.fixture(scope="session")
def demo_home() -> Path:
    """A registry that holds the demo model, kept from run to run: LOOP_TEST_CACHE, or .cache."""
    home = Path(os.environ.get("LOOP_TEST_CACHE", ROOT / ".cache"))
    install(home)
    return home


@pytest.fixture(scope="session")
def demo_model(demo_home: Path) -> Path:
    """The file of the demo model."""
    return install(demo_home)


@pytest.fixture(scope="session")
def shared_engine(demo_model: Path) -> Iterator[EngineProcess]:
    """A running engine for the tests that only ask it something."""
    with EngineProcess("--model", str(demo_model), "--alias", ALIAS, "--port", "0") as engine:
        engine.wait_until_up()
        yield engine


@pytest.fixture
def own_engine(demo_model: Path) -> Iterator[EngineProcess]:
    """A running engine that a test may end."""
    with EngineProcess("--model", str(demo_model), "--alias", ALIAS, "--port", "0") as engine:
        engine.wait_until_up()
        yield engine
