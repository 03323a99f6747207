"""Requests counted by key: in this process, or in a Redis server that several share."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.api.security.rates import Concurrency, Rates
from app.errors import GatewayError, Kind
from tests.fakes.redis_server import RedisServer

SECOND = 1.5  # s; after which a window of a second is over


def test_so_many_requests_are_allowed() -> None:
    """Each says what is left; the first one too many is told, and so is each after it."""
    rates = Rates("memory://")
    found = [rates.count("a", "3/minute") for _ in range(5)]
    assert [each.exceeded for each in found] == [False, False, False, True, True]
    assert [each.remaining for each in found] == [2, 1, 0, 0, 0]
    assert all(each.limit == 3 and 50 < each.reset <= 60 for each in found)


def test_keys_do_not_share() -> None:
    """Neither do two rates of one key, after a change of the configuration."""
    rates = Rates("memory://")
    for name, rate in (("a", "1/minute"), ("b", "1/minute"), ("a", "1/hour")):
        assert not rates.count(name, rate).exceeded
        assert rates.count(name, rate).exceeded


def test_a_window_ends() -> None:
    """After it there are as many requests again."""
    rates = Rates("memory://")
    assert [rates.count("a", "1/second").exceeded for _ in range(2)] == [False, True]
    time.sleep(SECOND)
    assert [rates.count("a", "1/second").exceeded for _ in range(2)] == [False, True]


def test_threads_count_exactly() -> None:
    """Of many at the same moment exactly as many are allowed as may be."""
    rates = Rates("memory://")
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: rates.count("a", "500/day").exceeded, range(2000)))
    assert found.count(False) == 500


def test_counting_starts_no_thread() -> None:
    """A thread for each request would cost more than the request."""
    rates = Rates("memory://")
    before = threading.active_count()
    for _ in range(50):
        rates.count("a", "9/day")
        assert threading.active_count() <= before


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """A server that counts, as far as it has to know how."""
    with RedisServer() as server:
        yield server


def test_gateways_share_what_a_server_counts(redis: RedisServer) -> None:
    """Two with one server allow as much as one alone."""
    one, two = Rates(redis.url), Rates(redis.url)
    found = [each.count("a", "3/minute") for each in (one, two, one, two)]
    assert [each.exceeded for each in found] == [False, False, False, True]
    assert [each.remaining for each in found] == [2, 1, 0, 0]
    assert all(0 < each.reset <= 60 for each in found)


def silent() -> tuple[socket.socket, str]:
    """A server that takes connections and never says a word."""
    listener = socket.create_server(("127.0.0.1", 0))
    return listener, f"redis://:pa55w0rd@127.0.0.1:{listener.getsockname()[1]}"


def test_a_server_that_says_nothing_is_not_waited_for(
        caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway counts by itself, says so once without the address, and goes on."""
    monkeypatch.setattr(logging.getLogger("app"), "propagate", True)
    listener, url = silent()
    with listener:
        rates = Rates(url)
        started = time.monotonic()
        found = [rates.count("a", "2/minute").exceeded for _ in range(3)]
        assert time.monotonic() - started < 5
    assert found == [False, False, True]
    [record] = caplog.records
    assert "requests are counted here" in record.getMessage()
    assert "pa55w0rd" not in caplog.text


def test_a_server_that_is_gone_is_asked_again_later(redis: RedisServer) -> None:
    """Until then it costs no time; then it counts again."""
    now = 100.0
    rates = Rates(redis.url, lambda: now)
    assert rates.count("a", "5/minute").remaining == 4
    redis.broken = True
    assert rates.count("a", "5/minute").remaining == 4
    asked = redis.asked
    redis.broken = False
    now += 9.9
    assert rates.count("a", "5/minute").remaining == 3 and redis.asked == asked
    now += 0.2
    assert rates.count("a", "5/minute").remaining == 3 and redis.asked > asked


def test_so_many_calls_run_at_a_time() -> None:
    """One more is refused, until one has ended; other keys have their own."""
    concurrency = Concurrency()
    concurrency.take("a", 2)
    concurrency.take("a", 2)
    with pytest.raises(GatewayError, match="may have 2 calls at a time") as raised:
        concurrency.take("a", 2)
    assert raised.value.kind is Kind.RATE_LIMITED
    concurrency.take("b", 2)
    concurrency.give_back("a")
    concurrency.take("a", 2)
    with pytest.raises(GatewayError):
        concurrency.take("a", 2)
