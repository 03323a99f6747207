"""When each model last served a request: what counts as loaded of attached engines."""

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
        """The model has just served a request.

        ``keep_alive`` counts from then on for as long as the model is loaded; 0 ends that.
        """
        now = self._clock()
        with self._lock:
            at, keep = self._used.get(model, (now, self.keep_alive))
            end = _end(at, keep)
            if keep_alive is None:
                keep_alive = keep if end is None or end > now else self.keep_alive
            self._used[model] = (now, keep_alive)

    def until(self, model: str) -> tuple[bool, datetime | None]:
        """Whether the model counts as loaded, and until when; None is for ever."""
        with self._lock:
            used = self._used.get(model)
        if used is None:
            return False, None
        end = _end(*used)
        return end is None or end > self._clock(), end

    def by_last_use(self) -> list[str]:
        """The models that were ever used, the latest first."""
        with self._lock:
            return sorted(self._used, key=lambda model: self._used[model][0], reverse=True)


def _end(at: datetime, keep: float) -> datetime | None:
    try:
        return None if math.isinf(keep) else at + timedelta(seconds=keep)
    except OverflowError:
        return None
