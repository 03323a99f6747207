"""An engine that loads its model is told from one that is busy, and waited for."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.call import Headers, Reply
from app.engines.hangup import Departure
from app.engines.loading import Loading, says_loading
from app.errors import GatewayError, Kind

LOADING = b'{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}'
GONE = GatewayError(Kind.ENGINE_UNAVAILABLE, "nobody there")


@pytest.mark.parametrize(("status", "headers", "body", "says"), [
    (503, [], LOADING, True),
    (503, [], b'{"error":"the model is being loaded"}', True),
    (503, [("Retry-After", "3")], LOADING, False),
    (503, [], b'{"error":{"message":"no slot available"}}', False),
    (503, [], b'{"error":"server overloaded"}', False),
    (503, [], b"", False),
    (500, [], LOADING, False), (200, [], LOADING, False), (429, [], LOADING, False),
])
def test_a_503_may_mean_loading(status: int, headers: Headers, body: bytes, says: bool) -> None:
    """Only by its own words, and unless it names a time to come back."""
    assert says_loading(Reply.whole(status, headers, body)) is says


class Engine:
    """Gives one status after the other, the last one for ever; counts the questions."""

    def __init__(self, *said: int | GatewayError) -> None:
        self.said = list(said)
        self.asked = 0

    def ask(self, target: str) -> tuple[int, bytes]:
        assert target == "/health"
        self.asked += 1
        found = self.said.pop(0) if len(self.said) > 1 else self.said[0]
        if isinstance(found, GatewayError):
            raise found
        return found, b""


def soon() -> float:
    """A deadline that is not reached."""
    return time.monotonic() + 10


@pytest.mark.parametrize("status", [200, 404, 500])
def test_it_is_waited_for(status: int) -> None:
    """Until it answers anything but 503; a question that is not answered in time is asked again."""
    engine = Engine(503, GatewayError(Kind.ENGINE_TIMEOUT, "late"), status)
    loading = Loading(engine.ask, 10)
    loading.wait(Departure(None), soon())
    assert engine.asked == 3 and loading.since is None


def test_it_may_load_for_too_long() -> None:
    """Then the call is told to come back."""
    loading = Loading(Engine(503).ask, 7)
    with pytest.raises(GatewayError) as raised:
        loading.wait(Departure(None), time.monotonic())
    assert (raised.value.kind, raised.value.wait) == (Kind.ENGINE_NOT_READY, 5)
    assert "7 s" in raised.value.message and loading.since is not None


def test_it_may_be_gone() -> None:
    """That ends the wait."""
    with pytest.raises(GatewayError) as raised:
        Loading(Engine(503, GONE).ask, 10).wait(Departure(None), soon())
    assert raised.value is GONE


def test_the_client_may_leave() -> None:
    """That ends the wait too, at once."""
    departure, asked = Departure(None), threading.Event()

    def ask(_: str) -> tuple[int, bytes]:
        asked.set()
        return 503, b""

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(Loading(ask, 10).wait, departure, soon())
        assert asked.wait(10)
        departure.happen()
        error = waiting.exception(10)
    assert isinstance(error, GatewayError) and error.kind is Kind.CLIENT_GONE


def test_it_may_be_known_without_a_wait() -> None:
    """By what somebody else has heard of it; who is only busy neither begins to load nor ends."""
    loading = Loading(Engine(503).ask, 10)
    busy = b'{"error":"no slot available"}'
    for status, body, loads in ((503, busy, False), (503, LOADING, True), (503, busy, True),
                                (503, LOADING, True), (200, b"", False), (503, LOADING, True)):
        loading.hear(status, body)
        assert (loading.since is not None) is loads
    loading.over()
    assert loading.since is None


def test_a_crowd_asks_no_more_often_than_one() -> None:
    """Whoever waits beside others goes by their answer."""
    engine = Engine(503, 503, 200)
    loading = Loading(engine.ask, 10)
    with ThreadPoolExecutor(8) as pool:
        for waiting in [pool.submit(loading.wait, Departure(None), soon()) for _ in range(8)]:
            waiting.result(10)
    assert engine.asked <= 4
