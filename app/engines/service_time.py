"""How long an engine takes for a call, measured, and what that means for who has to wait."""

_WEIGHT = 0.2  # of the newest call in the mean
_LONGEST = 3600.0  # s; nobody is told to come back later than that


class ServiceTime:
    """A moving mean of what calls take, in seconds. Not locked: its owner is."""

    def __init__(self) -> None:
        self._mean: float | None = None

    def note(self, seconds: float) -> None:
        """One more call has taken so long."""
        before = seconds if self._mean is None else self._mean
        self._mean = before + _WEIGHT * (seconds - before)

    @property
    def mean(self) -> float:
        """Seconds; 1 before the first call is through."""
        return 1.0 if self._mean is None else self._mean

    def wait(self, ahead: int, slots: int) -> float:
        """Seconds until ``ahead`` calls are through, ``slots`` of them at a time."""
        return min(_LONGEST, self.mean * ahead / slots)
