"""When each model last served a request: what counts as loaded of attached engines."""

import math
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

Clock = Callable[[], datetime]


class LoadedModels:
    """Models by last use. Safe to use from many threads; ``clock`` gives the time with its zone."""

    def __init__(self, keep_alive: Callable[[], float], clock: Clock) -> None:
        """A model counts as loaded for ``keep_alive()`` seconds after its last use."""
        self._keep_alive = keep_alive
        self._clock = clock
        self._lock = threading.Lock()
        # When, and for how long after that; None is for as long as is usual.
        self._used: dict[str, tuple[datetime, float | None]] = {}

    def touch(self, model: str, keep_alive: float | None = None) -> None:
        """The model has just served a request.

        ``keep_alive`` counts from then on for as long as the model is loaded; 0 ends that.
        """
        now = self._clock()
        with self._lock:
            if keep_alive is None and model in self._used:
                at, keep = self._used[model]
                end = self._end(at, keep)
                keep_alive = keep if end is None or end > now else None
            self._used[model] = (now, keep_alive)

    def forget_keep_alive(self, model: str) -> None:
        """The model has just served a request, and the usual time counts for it again."""
        now = self._clock()
        with self._lock:
            self._used[model] = (now, None)

    def until(self, model: str) -> tuple[bool, datetime | None]:
        """Whether the model counts as loaded, and until when; None is for ever."""
        with self._lock:
            used = self._used.get(model)
        if used is None:
            return False, None
        end = self._end(*used)
        return end is None or end > self._clock(), end

    def by_last_use(self) -> list[str]:
        """The models that were ever used, the latest first."""
        with self._lock:
            return sorted(self._used, key=lambda model: self._used[model][0], reverse=True)

    def _end(self, at: datetime, keep: float | None) -> datetime | None:
        seconds = self._keep_alive() if keep is None else keep
        try:
            return None if math.isinf(seconds) else at + timedelta(seconds=seconds)
        except OverflowError:
            return None
