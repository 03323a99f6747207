"""Whether an engine can be relied on: what its answers, refusals and silences so far say."""

import threading
import time
from collections.abc import Callable

_FIRST_PAUSE = 1.0  # s until a suspect engine gets one call on trial; doubled each time
_LONGEST_PAUSE = 30.0
_MOST = 0.9  # of a silence: what is measured of it may be a little less
_GAP = 0.1  # s; clients that follow each other so closely wait without a break


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
        self._waiting = 0  # calls that wait for the engine to send
        self.answered_at = self._heard_at = self._waiting_since = self._idle_since = clock()

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
        self.answered_at = self._heard_at = self._clock()
        if self.strikes or self._trial_at is not None:
            self.reset()

    def probed(self) -> None:
        """A probe was answered: forgiven is what probes and refused connections said.

        Not so the silences of calls: whoever answers probes may still hang at work, and too many
        of them are forgiven only for an answer to a call.
        """
        self.answered_at = self._clock()
        with self._lock:
            self._misses = 0
            if self._silences < self._limit:
                self._trust()

    def refused(self, why: str) -> None:
        """The engine refused the connection: it is suspect."""
        with self._lock:
            self.error = why
            self._suspect()

    def expect(self) -> None:
        """From now on, until ``expect_no_more``, one more call waits for the engine to send.

        Not while its client takes what was sent: the engine may be unable to send more then.
        """
        with self._lock:
            now = self._clock()
            if not self._waiting and (
                    now - self._idle_since > _GAP or self._heard_at > self._waiting_since):
                self._waiting_since = now
            self._waiting += 1

    def expect_no_more(self) -> None:
        """The call waits no longer, whether it got something or not."""
        with self._lock:
            self._waiting -= 1
            self._idle_since = self._clock()

    def hear(self) -> None:
        """The engine has sent something, on whatever call; costs next to nothing."""
        self._heard_at = self._clock()

    def silent(self, why: str, seconds: float) -> bool:
        """A call that waits was not answered for so long; whether there are too many strikes now.

        It is a strike only if the engine sent nothing at all in this time: slow calls beside a good
        stream are none, and calls that fall silent together are one.
        """
        with self._lock:
            self.error = why
            return self._strike_after(seconds * _MOST, why)

    def given_up(self, why: str, seconds: float) -> bool:
        """As ``silent``, of a call that waits and whose client leaves, however long that waited.

        It is a strike if the engine sent nothing at all for so long, in which there was always a
        call that waited: calls that are given up one after the other show that it hangs.
        """
        with self._lock:
            return self._strike_after(seconds, why)

    def missed(self, why: str) -> bool:
        """A strike: a probe was not answered; whether there are too many of them now."""
        with self._lock:
            self.error = why
            self._misses += 1
            return self._struck()

    def begin_trial(self) -> None:
        """A call goes to a suspect engine; the others keep away until it is known how it ended.

        The next one comes after a longer pause, which begins anew where this one ends badly.
        """
        with self._lock:
            if self._trial_at is not None:
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)
                self._suspect()

    def reset(self) -> None:
        """The engine is healthy, as a new one is."""
        with self._lock:
            self._silences = self._misses = 0
            self._waiting_since = self._clock()
            self._trust()

    def _strike_after(self, seconds: float, why: str) -> bool:
        now = self._clock()
        if now - max(self._heard_at, self._waiting_since) < seconds:
            return False
        self.error = why
        self._waiting_since = now  # the next strike takes as long again
        self._silences += 1
        return self._struck()

    def _struck(self) -> bool:
        if self.strikes >= self._limit:
            self._suspect()
        return self.strikes >= self._limit

    def _trust(self) -> None:
        self._trial_at, self._pause = None, _FIRST_PAUSE

    def _suspect(self) -> None:
        self._trial_at = self._clock() + self._pause
