"""When each model last served a request: what counts as loaded while engines run by themselves."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

Clock = Callable[[], datetime]


class LoadedModels:
    """Models by last use. Safe to use from many threads; ``clock`` gives the time with its zone."""

    def __init__(self, keep_alive: float, clock: Clock) -> None:
        """A model counts as loaded for ``keep_alive`` seconds after its last use."""
        self._keep_alive = timedelta(seconds=keep_alive)
        self._clock = clock
        self._lock = threading.Lock()
        self._last_used: dict[str, datetime] = {}

    def touch(self, model: str) -> None:
        """The model has just served a request."""
        now = self._clock()
        with self._lock:
            self._last_used[model] = now

    def active(self) -> dict[str, datetime]:
        """Model → when it stops to count as loaded, sorted by name."""
        now = self._clock()
        with self._lock:
            used = sorted(self._last_used.items())
        return {model: end for model, at in used if (end := at + self._keep_alive) > now}

    def latest(self) -> str | None:
        """The model that was used last, if one is active."""
        active = self.active()
        return max(active, key=lambda model: active[model]) if active else None
