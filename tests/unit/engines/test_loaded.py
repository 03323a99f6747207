"""When models were last used, and until when they count as loaded."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest

from app.engines.loaded import LoadedModels

NOON = datetime(2026, 10, 3, 12, tzinfo=timezone.utc)
FIVE_MINUTES = timedelta(minutes=5)


class SetClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def move(self, **time: float) -> None:
        """Let time pass."""
        self.now += timedelta(**time)


@pytest.fixture
def clock() -> SetClock:
    """A clock that shows noon."""
    return SetClock()


@pytest.fixture
def loaded(clock: SetClock) -> LoadedModels:
    """Models by that clock, with five minutes of keep-alive."""
    return LoadedModels(lambda: 300, clock)


def test_at_first_nothing_is_loaded(loaded: LoadedModels) -> None:
    """Nor used."""
    assert loaded.until("m") == (False, None)
    assert loaded.by_last_use() == []


def test_a_used_model_is_loaded_for_the_keep_alive_time(
        loaded: LoadedModels, clock: SetClock) -> None:
    """Until exactly five minutes after its use."""
    loaded.touch("m")
    clock.move(seconds=299.999)
    assert loaded.until("m") == (True, NOON + FIVE_MINUTES)
    clock.move(seconds=0.001)
    assert loaded.until("m")[0] is False


def test_each_use_counts_from_its_own_time(loaded: LoadedModels, clock: SetClock) -> None:
    """The last one decides, also after the model had expired."""
    loaded.touch("m")
    for _ in range(2):
        clock.move(minutes=4)
        loaded.touch("m")
        assert loaded.until("m") == (True, clock.now + FIVE_MINUTES)
    clock.move(hours=1)
    loaded.touch("m")
    assert loaded.until("m") == (True, clock.now + FIVE_MINUTES)


def test_the_latest_comes_first(loaded: LoadedModels, clock: SetClock) -> None:
    """Whatever its name."""
    for name in ("b", "c", "a", "b"):
        loaded.touch(name)
        assert loaded.by_last_use()[0] == name
        clock.move(seconds=1)
    assert loaded.by_last_use() == ["b", "a", "c"]


@pytest.mark.parametrize("keep", [0.5, 3600.0, 1e9])
def test_a_keep_alive_of_its_own_holds_until_the_model_expires(
        loaded: LoadedModels, clock: SetClock, keep: float) -> None:
    """Later uses that say nothing of it go by it; then the usual time counts again."""
    loaded.touch("m", keep)
    clock.move(milliseconds=100)
    loaded.touch("m")
    assert loaded.until("m") == (True, clock.now + timedelta(seconds=keep))
    clock.move(seconds=keep)
    assert loaded.until("m")[0] is False
    loaded.touch("m")
    assert loaded.until("m") == (True, clock.now + FIVE_MINUTES)


@pytest.mark.parametrize("keep", [math.inf, 1e300, 1e12])
def test_for_ever_has_no_end(loaded: LoadedModels, clock: SetClock, keep: float) -> None:
    """Nor has what lies beyond all dates."""
    loaded.touch("m", keep)
    clock.move(days=36500)
    loaded.touch("m")
    assert loaded.until("m") == (True, None)
    loaded.touch("m", 0)
    assert loaded.until("m")[0] is False


def test_many_threads_use_models(loaded: LoadedModels) -> None:
    """No use is lost, no list breaks."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: loaded.touch(f"m{number}"), range(200)))
    assert len(loaded.by_last_use()) == 200
