"""How long to go on when the hub fails, and the wish to stop."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Event

from app.catalog.problems import Cancelled, HubUnavailable
from app.catalog.progress import Progress

_WAITS = (1.0, 2.0, 4.0, 8.0, 15.0)  # s between tries that bring nothing
_LONGEST = 120.0  # s; a hub that wants more of it is given up


@dataclass(frozen=True)
class Patience:
    """``waits`` in seconds: as many tries more. Set ``cancelled`` in another thread to stop."""

    waits: Sequence[float] = _WAITS
    cancelled: Event = field(default_factory=Event)

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
        if not error.passing or tries >= len(self.waits) or (error.wait or 0) > _LONGEST:
            raise error
        wait = self.waits[tries] if error.wait is None else error.wait
        yield Progress(f"trying again in {wait:.0f} s")
        self.sleep(wait)
