"""Managed engines as the policy sees them, in the few situations that make a difference to it."""

from __future__ import annotations

from typing import Any

from app.engines.unit_facts import State, UnitFacts

GIB = 2 ** 30


def stopped(key: str, size: float = 1, **more: Any) -> UnitFacts:
    """There is no process and nobody wants one."""
    return UnitFacts(key, State.STOPPED, int(size * GIB), **more)


def wanted(key: str, since: float, size: float = 1, **more: Any) -> UnitFacts:
    """There is no process, and a call has waited since then."""
    return stopped(key, size, waiting=1, wanted_since=since, **more)


def starting(key: str, size: float = 1, **more: Any) -> UnitFacts:
    """It loads, for a call that waits."""
    return UnitFacts(key, State.STARTING, int(size * GIB), waiting=1, wanted_since=0.0, **more)


def idle(key: str, since: float, size: float = 1, **more: Any) -> UnitFacts:
    """It is ready, and nobody has wanted it since then."""
    return UnitFacts(key, State.READY, int(size * GIB), unused_since=since, **more)


def busy(key: str, ready: float = 0.0, size: float = 1, **more: Any) -> UnitFacts:
    """It is ready since then, one call runs and another waits."""
    more = {"held": 1, "waiting": 1, "wanted_since": ready, **more}
    return UnitFacts(key, State.READY, int(size * GIB), ready_since=ready, **more)


def drained(key: str, ready: float = 0.0, size: float = 1, **more: Any) -> UnitFacts:
    """It is held for another model's sake; no call runs, and one waits."""
    return busy(key, ready, size, held=0, **more)


def stopping(key: str, size: float = 1, **more: Any) -> UnitFacts:
    """It was told to end."""
    return UnitFacts(key, State.STOPPING, int(size * GIB), **more)
