"""What is waited for, until it is not wanted any more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Timer

import pytest

from app.catalog.hub.patience import Patience
from app.catalog.problems import Cancelled, HubUnavailable

PATIENCE = 20.0


class Slow:
    """Something that is entered once it is let to, and may fail then."""

    def __init__(self, error: Exception | None = None) -> None:
        self.let, self.left = Event(), Event()
        self.error = error

    @contextmanager
    def opened(self) -> Iterator[str]:
        """Blocks; raises ``error``."""
        assert self.let.wait(PATIENCE)
        if self.error:
            raise self.error
        try:
            yield "found"
        finally:
            self.left.set()


def test_what_is_entered_is_left() -> None:
    """Also by an error, which passes."""
    slow = Slow()
    slow.let.set()
    with pytest.raises(KeyError), Patience().entering(slow.opened()) as found:
        assert found == "found" and not slow.left.is_set()
        raise KeyError
    assert slow.left.is_set()


def test_an_error_of_entering_is_raised() -> None:
    """Where it is waited for."""
    slow = Slow(HubUnavailable("no"))
    slow.let.set()
    with pytest.raises(HubUnavailable, match="no"), Patience().entering(slow.opened()):
        pytest.fail("entered")


@pytest.mark.parametrize("error", [None, HubUnavailable("no")])
def test_what_comes_too_late_is_left_at_once(error: Exception | None) -> None:
    """Nobody waits for it, or hears of its error."""
    slow, patience = Slow(error), Patience()
    Timer(0.05, patience.cancel).start()
    with pytest.raises(Cancelled), patience.entering(slow.opened()):
        pytest.fail("entered")
    assert not slow.left.is_set()
    slow.let.set()
    assert error or slow.left.wait(PATIENCE)


def test_nothing_begins_once_it_is_cancelled() -> None:
    """It is not even asked for."""
    patience = Patience()
    patience.cancel()
    with pytest.raises(Cancelled):
        patience.until(lambda: pytest.fail("asked"))
