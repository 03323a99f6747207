"""Whether an engine can be relied on: what its answers, refusals and silences so far say."""

import threading
import time
from collections.abc import Callable

_FIRST_PAUSE = 1.0  # s until a suspect engine gets one call on trial; doubled each time
_LONGEST_PAUSE = 30.0


class Health:
    """The health of one engine. Safe to use from many threads."""

    def __init__(self, strikes: int, clock: Callable[[], float] = time.monotonic) -> None:
        """``strikes`` silences in a row make the engine suspect; one refused connection does."""
        self._limit = strikes
        self._clock = clock
        self._lock = threading.Lock()
        self._trial_at: float | None = None  # None: healthy
        self._pause = _FIRST_PAUSE
        self._silences = self._misses = 0  # in a row: of calls, of probes
        self.error: str | None = None
        self.answered_at = clock()

    @property
    def strikes(self) -> int:
        """Silences and failed probes in a row."""
        return self._silences + self._misses

    @property
    def suspect(self) -> bool:
        """Whether the engine is to be avoided."""
        return self._trial_at is not None

    @property
    def usable(self) -> bool:
        """Whether a call may go there: the engine is healthy, or it is time for a trial."""
        trial = self._trial_at
        return trial is None or self._clock() >= trial

    def answered(self) -> None:
        """The engine gave a good answer: it is healthy."""
        self.answered_at = self._clock()
        if self.strikes or self._trial_at is not None:
            self.reset()

    def probed(self) -> None:
        """A probe was answered: a suspect engine is healthy again.

        The silences of one that is not suspect stay: whoever answers probes may still hang at work.
        """
        self.answered_at = self._clock()
        if self._trial_at is not None:
            self.reset()
        self._misses = 0

    def refused(self, why: str) -> None:
        """The engine refused the connection: it is suspect."""
        with self._lock:
            self.error = why
            self._suspect()

    def silent(self, why: str, probe: bool = False) -> bool:
        """A strike: a call or a probe was not answered; whether there are too many of them now."""
        with self._lock:
            self.error = why
            self._silences += not probe
            self._misses += probe
            if self.strikes >= self._limit:
                self._suspect()
            return self.strikes >= self._limit

    def begin_trial(self) -> None:
        """A call goes to a suspect engine; the others keep away until it is known how it ended."""
        with self._lock:
            if self._trial_at is not None:
                self._suspect()

    def reset(self) -> None:
        """The engine is healthy, as a new one is."""
        with self._lock:
            self._silences = self._misses = 0
            self._trial_at, self._pause = None, _FIRST_PAUSE

    def _suspect(self) -> None:
        self._trial_at = self._clock() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)
