"""How long to go on when the hub fails, and the wish to stop."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TypeVar

from app.catalog.problems import Cancelled, HubUnavailable
from app.catalog.progress import Progress

_WAITS = (1.0, 2.0, 4.0, 8.0, 15.0)  # s between tries that bring nothing
_LONGEST = 120.0  # s; a hub that wants more of it is given up

Found = TypeVar("Found")


@dataclass(frozen=True)
class Patience:
    """``waits`` in seconds: as many tries more.

    Set ``cancelled`` in another thread to stop at the next piece, or call ``cancel``.
    """

    waits: Sequence[float] = _WAITS
    cancelled: Event = field(default_factory=Event)
    _wakes: list[Callable[[], None]] = field(default_factory=list)

    def cancel(self) -> None:
        """Stop at once, also in the midst of a wait for the hub; never blocks."""
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

    def until(self, work: Callable[[], Found],
              undo: Callable[[Found], object] = lambda _: None) -> Found:
        """What ``work`` gives, for which ``cancel`` does not wait: it runs in a thread of its own.

        Raises Cancelled, and what ``work`` raises. ``undo`` gets what comes after a cancel.
        """
        found: Future[Found] = Future()

        def wake() -> None:
            found.cancel()

        with self.waking(wake):
            # Nothing interrupts the wait for an address, a connection or the head of an answer.
            Thread(target=_settle, args=(found, work, undo), name="hub", daemon=True).start()
            try:
                return found.result()
            except CancelledError:
                raise Cancelled from None

    @contextmanager
    def entering(self, context: AbstractContextManager[Found]) -> Iterator[Found]:
        """Within ``context``, whose entering is waited for as by ``until``."""
        found = self.until(context.__enter__, lambda _: context.__exit__(None, None, None))
        with ExitStack() as stack:
            stack.push(context)
            yield found

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


def _settle(future: "Future[Found]", work: Callable[[], Found],
            undo: Callable[[Found], object]) -> None:
    try:
        found = work()
    except BaseException as error:  # it is raised where the result is waited for
        if future.set_running_or_notify_cancel():
            future.set_exception(error)
    else:
        if future.set_running_or_notify_cancel():
            future.set_result(found)
        else:
            undo(found)
