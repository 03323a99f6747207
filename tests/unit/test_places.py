"""Places bound how many requests wait, and a place that comes free in a moment is waited for."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.errors import GatewayError, Kind
from app.places import Places


def refusal(places: Places) -> Kind:
    """Why no place is given."""
    with pytest.raises(GatewayError) as caught:
        places.take()
    return caught.value.kind


def test_no_more_than_there_are() -> None:
    """One more is refused, and a place that was given back is there again."""
    places = Places(2)
    places.take()
    places.take()
    assert refusal(places) is Kind.BUSY and not places.try_take()
    places.give_back()
    places.take()


def test_a_place_that_comes_free_in_a_moment_is_taken() -> None:
    """Who has its answer and asks again is not refused because its place is not free yet."""
    places = Places(1)
    places.take()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(places.take)
        threading.Event().wait(0.02)
        places.give_back()
        assert waiting.result(5) is None
    assert refusal(places) is Kind.BUSY


def test_few_wait_for_it() -> None:
    """The threads that answer what needs no place are not all taken by those that wait for one."""
    places = Places(1)
    places.take()
    with ThreadPoolExecutor(32) as pool:
        refused = list(pool.map(lambda _: refusal(places), range(100)))
    assert refused == [Kind.BUSY] * 100
    places.give_back()
    places.take()


def test_none_once_it_is_closed() -> None:
    """Neither a free one nor one that comes free."""
    places = Places(2)
    places.take()
    places.close()
    assert refusal(places) is Kind.STOPPING and not places.try_take()
    places.give_back()
    assert refusal(places) is Kind.STOPPING
