"""When each model last served a request: what counts as loaded while engines run by themselves."""

import math
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

Clock = Callable[[], datetime]


class LoadedModels:
    """Models by last use. Safe to use from many threads; ``clock`` gives the time with its zone."""

    def __init__(self, keep_alive: float, clock: Clock) -> None:
        """A model counts as loaded for ``keep_alive`` seconds after its last use."""
        self.keep_alive = keep_alive
        self._clock = clock
        self._lock = threading.Lock()
        self._used: dict[str, tuple[datetime, float]] = {}

    def touch(self, model: str, keep_alive: float | None = None) -> None:
        """The model has just served a request; ``keep_alive`` is for this use only, 0 ends it."""
        now = self._clock()
        with self._lock:
            self._used[model] = (now, self.keep_alive if keep_alive is None else keep_alive)

    def active(self) -> dict[str, datetime | None]:
        """Model → when it stops to count as loaded, None for never; sorted by name."""
        now = self._clock()
        with self._lock:
            used = sorted(self._used.items())
        ends = {model: _end(at, keep) for model, (at, keep) in used}
        return {model: end for model, end in ends.items() if end is None or end > now}

    def latest(self) -> str | None:
        """The model that was used last, if one is active."""
        active = self.active()
        with self._lock:
            times = {model: at for model, (at, _) in self._used.items() if model in active}
        return max(times, key=lambda model: times[model]) if times else None


def _end(at: datetime, keep: float) -> datetime | None:
    try:
        return None if math.isinf(keep) else at + timedelta(seconds=keep)
    except OverflowError:
        return None
