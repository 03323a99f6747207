"""What several engines say is one picture, also where one ends and another begins meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from app.engines.steady import steadily
from app.engines.unit_facts import State


def unit(name: str, state: State) -> Any:
    """As much of a unit as is compared."""
    return SimpleNamespace(key=name, life=SimpleNamespace(state=state, process=None))


def test_one_picture() -> None:
    """The second reading counts where the first one saw two engines by turns."""
    one, two = unit("one", State.STOPPING), unit("two", State.STOPPED)
    readings: list[list[State]] = []

    def read() -> list[State]:
        seen = [one.life.state]
        if not readings:
            one.life.state, two.life.state = State.STOPPED, State.STARTING
        readings.append([*seen, two.life.state])
        return readings[-1]

    assert steadily(lambda: [one, two], read) == [State.STOPPED, State.STARTING]
    assert readings[0] == [State.STOPPING, State.STARTING] and len(readings) == 2


def test_it_comes_to_an_end() -> None:
    """Engines that never rest are read a few times."""
    restless, count = unit("m", State.READY), 0

    def read() -> int:
        nonlocal count
        count += 1
        restless.life.process = count
        return count

    assert 1 < steadily(lambda: [restless], read) < 10
