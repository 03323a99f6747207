"""The built-in engine starts wherever the gateway runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog.facts import FactsCache
from app.catalog.registry import Registry
from app.engines.command import EngineCommand, Surroundings
from app.engines.ports import free_port
from app.settings import BUILTIN, EngineSettings
from tests.fakes.registry_home import RegistryHome


def command(home: Path, *words: str) -> EngineCommand:
    """The command of these words for a model that no engine can load."""
    RegistryHome(home).add("m", b"no GGUF")
    settings = EngineSettings(
        "", ("*",), command=words, connect_timeout=1.0, read_timeout=1.0)
    return EngineCommand("m", settings, Surroundings(Registry(home), FactsCache(), home, 4))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: not the project's, but with a module of the engine's name in it."""
    directory = tmp_path / "elsewhere"
    (directory / "app" / "engines").mkdir(parents=True)
    (directory / "app" / "__init__.py").touch()
    (directory / "app" / "engines" / "__init__.py").touch()
    (directory / "app" / "engines" / "builtin.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(directory)
    return directory


@pytest.mark.usefixtures("elsewhere")
def test_it_is_found(tmp_path: Path) -> None:
    """It comes so far as to say what is wrong with the model."""
    process = command(tmp_path / "home", *BUILTIN).start(free_port())
    assert process.wait(30)
    assert process.last_line().startswith("builtin engine: ")


def test_other_commands_run_where_the_gateway_does(tmp_path: Path, elsewhere: Path) -> None:
    """So that relative paths in them mean what they say."""
    process = command(tmp_path / "home", "pwd").start(free_port())
    assert process.wait(30)
    assert process.last_line() == str(elsewhere)
