"""Fixtures for the tests of what stands in front of engines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.visits import HandClock, Visits


@pytest.fixture
def visits() -> Iterator[Visits]:
    """Calls in threads of their own, which are all gone after the test."""
    made = Visits()
    yield made
    made.end()


@pytest.fixture
def clock() -> HandClock:
    """A clock that stands still."""
    return HandClock()
