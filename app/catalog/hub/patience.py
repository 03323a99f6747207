"""How long to go on when the hub fails, and the wish to stop."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

from app.catalog.problems import Cancelled, HubUnavailable
from app.catalog.progress import Progress

_WAITS = (1.0, 2.0, 4.0, 8.0, 15.0)  # s between tries that bring nothing
_LONGEST = 120.0  # s; a hub that wants more of it is given up


@dataclass(frozen=True)
class Patience:
    """``waits`` in seconds: as many tries more.

    Set ``cancelled`` in another thread to stop at the next piece, or call ``cancel``.
    """

    waits: Sequence[float] = _WAITS
    cancelled: Event = field(default_factory=Event)
    _wakes: list[Callable[[], None]] = field(default_factory=list)

    def cancel(self) -> None:
        """Stop at once, also in the midst of waiting for bytes of a file; never blocks."""
        self.cancelled.set()
        for wake in list(self._wakes):
            wake()

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Within it ``cancel`` calls ``wake``, which must not block; raises Cancelled."""
        self._wakes.append(wake)
        try:
            self.check()
            yield
        finally:
            self._wakes.remove(wake)

    def check(self) -> None:
        """Raises Cancelled when whoever asked does not want it any more."""
        if self.cancelled.is_set():
            raise Cancelled

    def sleep(self, seconds: float) -> None:
        """Blocks for so long; raises Cancelled, then at once."""
        if self.cancelled.wait(seconds):
            raise Cancelled

    def after(self, error: HubUnavailable, tries: int) -> Iterator[Progress]:
        """Blocks until another try makes sense, after so many in vain; says so by an event.

        Raises the error when it is enough, or will not pass, and Cancelled.
        """
        self.check()
        if not error.passing or tries >= len(self.waits) or (error.wait or 0) > _LONGEST:
            raise error
        wait = self.waits[tries] if error.wait is None else error.wait
        yield Progress(f"trying again in {wait:.0f} s")
        self.sleep(wait)
