"""Reads what several engines say as one picture, though one ends and the next begins meanwhile."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from app.engines.unit import Unit

_READINGS = 5  # engines that come and go faster than they can be read make no better picture

Found = TypeVar("Found")


def steadily(units: Callable[[], Iterable[Unit]], read: Callable[[], Found]) -> Found:
    """What ``read`` gives, read again while the processes of the units change; a few times.

    To read what processes take is slow: without this an engine could be seen before its end and
    another one after its start, both in memory that only one of them had.
    """
    for _ in range(_READINGS):
        before = _processes(units())
        found = read()
        if _processes(units()) == before:
            break
    return found


def _processes(units: Iterable[Unit]) -> list[tuple[object, ...]]:
    return [(unit.key, unit.life.state, unit.life.process) for unit in units]
