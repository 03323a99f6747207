"""What counts as loaded: models used within the keep-alive time."""

from __future__ import annotations

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
    return LoadedModels(300, clock)


def test_at_first_nothing_is_loaded(loaded: LoadedModels) -> None:
    """Neither in the list nor as the latest."""
    assert loaded.active() == {}
    assert loaded.latest() is None


def test_a_used_model_is_loaded_for_the_keep_alive_time(
        loaded: LoadedModels, clock: SetClock) -> None:
    """Until exactly five minutes after its use."""
    loaded.touch("m")
    assert loaded.active() == {"m": NOON + FIVE_MINUTES}
    clock.move(seconds=299.999)
    assert loaded.active() == {"m": NOON + FIVE_MINUTES}
    clock.move(seconds=0.001)
    assert loaded.active() == {}
    assert loaded.latest() is None


def test_each_use_counts_from_its_own_time(loaded: LoadedModels, clock: SetClock) -> None:
    """The last one decides, also after the model had expired."""
    loaded.touch("m")
    for _ in range(2):
        clock.move(minutes=4)
        loaded.touch("m")
        assert loaded.active() == {"m": clock.now + FIVE_MINUTES}
    clock.move(hours=1)
    loaded.touch("m")
    assert loaded.active() == {"m": clock.now + FIVE_MINUTES}


def test_models_are_sorted_by_name_and_expire_one_by_one(
        loaded: LoadedModels, clock: SetClock) -> None:
    """Each has its own time."""
    for name in ("zeta", "alpha", "mid"):
        loaded.touch(name)
        clock.move(minutes=2)
    assert list(loaded.active()) == ["alpha", "mid"]
    clock.move(minutes=2)
    assert list(loaded.active()) == ["mid"]


def test_the_latest_is_the_one_used_last(loaded: LoadedModels, clock: SetClock) -> None:
    """Whatever its name, and as long as it counts as loaded."""
    for name in ("b", "c", "a", "b"):
        loaded.touch(name)
        assert loaded.latest() == name
        clock.move(seconds=1)
    clock.move(minutes=5)
    assert loaded.latest() is None


@pytest.mark.parametrize(("keep_alive", "left"), [(0.5, "later"), (0.001, None), (3600, "later")])
def test_the_keep_alive_time_may_be_any(
        clock: SetClock, keep_alive: float, left: str | None) -> None:
    """Fractions of a second as well as hours."""
    loaded = LoadedModels(keep_alive, clock)
    loaded.touch("later")
    clock.move(milliseconds=100)
    assert loaded.latest() == left


def test_many_threads_use_models(loaded: LoadedModels) -> None:
    """No use is lost, no list breaks."""
    def use(number: int) -> int:
        loaded.touch(f"m{number}")
        return len(loaded.active())

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(use, range(200)))
    assert min(counts) >= 1
    assert len(loaded.active()) == 200
