"""Fixtures for tests of engine processes, and of what stands in front of engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.engines.orphans import marks
from app.engines.process import EngineProcess
from tests.fakes.engine_steps import reply
from tests.fakes.marked import end_carrying, end_written
from tests.fakes.raw_engine import RawEngine
from tests.fakes.visits import HandClock, Visits
from tests.unit.engines.supervised import Bench

Start = Callable[..., EngineProcess]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home whose engines, and what has put its id in `pids`, must be gone when the test ends."""
    yield tmp_path
    left = end_carrying(f"LOOP_ENGINE_HOME={tmp_path}\0") + end_written(tmp_path / "pids")
    assert not left


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    """A function that starts a shell script as an engine; killed when the test ends."""
    started: list[EngineProcess] = []

    def start_script(script: str, seconds_to_stop: float = 5, log: Path | None = None,
                     ) -> EngineProcess:
        process = EngineProcess(["sh", "-c", script], log or home / "logs" / "engine.log",
                                seconds_to_stop, marks(home))
        started.append(process)
        return process

    yield start_script
    for process in started:
        process.kill()
    assert all(process.wait(5) for process in started)


@pytest.fixture
def visits() -> Iterator[Visits]:
    """Calls in threads of their own, which are all gone after the test."""
    made = Visits()
    yield made
    made.end()


@pytest.fixture
def clock() -> HandClock:
    """A clock that stands still."""
    return HandClock()


@pytest.fixture
def answering() -> Iterator[RawEngine]:
    """What answers for every engine of a bench."""
    with RawEngine(reply(200, b"{}")) as engine:
        engine.probe_script = [reply(200, b"{}")]
        yield engine


@pytest.fixture
def bench(answering: RawEngine) -> Iterator[Bench]:
    """A supervisor of engines without processes; cleared up after the test."""
    found = Bench(answering)
    yield found
    found.close()
