"""How many requests a key may make in a time, and how many calls at a time."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from limits import RateLimitItem, parse
from limits.errors import StorageError
from limits.storage import MemoryStorage, Storage, storage_from_string
from limits.strategies import FixedWindowRateLimiter

from app.errors import GatewayError, Kind

log = logging.getLogger(__name__)

_REDIS_TIMEOUT = 0.5  # s; a counter is not worth more waiting
_AWAY = 10.0  # s; a server that failed is not asked for so long


@dataclass(frozen=True)
class Standing:
    """What a key with a rate has left: so many of ``limit`` requests for ``reset`` seconds.

    ``exceeded`` is whether the request that was counted is one too many.
    """

    limit: int
    remaining: int
    reset: float
    exceeded: bool


class Rates:
    """Counts the requests of each key that has a rate. Safe to use from many threads."""

    def __init__(self, storage: str, clock: Callable[[], float] = time.monotonic) -> None:
        """``storage`` is memory:// or the address of a Redis server that several gateways share."""
        self._own = FixedWindowRateLimiter(_Counters())
        self._shared = None if storage.startswith("memory:") else _shared(storage)
        self._clock = clock
        self._away_until = clock()

    def count(self, name: str, rate: str) -> Standing:
        """Count a request of the key with this name and rate.

        Blocks for a Redis server, half a second at most for each of its answers; while it does not
        give any, this gateway counts by itself.
        """
        item = _item(rate)
        if self._shared is None or self._clock() < self._away_until:
            return _counted(self._own, item, name)
        try:
            return _counted(self._shared, item, name)
        except StorageError as error:
            self._away_until = self._clock() + _AWAY
            cause = type(error.__cause__ or error).__name__
            log.warning("server.rate-storage fails (%s); requests are counted here", cause)
            return _counted(self._own, item, name)


class Concurrency:
    """Counts the calls of each key that run. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()

    def take(self, name: str, limit: int) -> None:
        """Count one more call; never blocks, raises GatewayError where that is one too many."""
        with self._lock:
            full = self._running[name] >= limit
            if not full:
                self._running[name] += 1
        if full:
            calls = "one call" if limit == 1 else f"{limit} calls"
            raise GatewayError(Kind.RATE_LIMITED, f"the key '{name}' may have {calls} at a time")

    def give_back(self, name: str) -> None:
        """Count one less."""
        with self._lock:
            self._running[name] -= 1


class _Idle(threading.Timer):
    """A timer that is never started, and says that it runs."""

    def is_alive(self) -> bool:
        return True


class _Counters(MemoryStorage):
    """One counter per key, for ever: no thread is started to forget old ones.

    The library starts one within every 10 ms in which something is counted, which costs more than
    all else here. Its counters are exact under one lock only.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self.timer.cancel()
        self.timer = _Idle(0, lambda: None)

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """As MemoryStorage.incr."""
        with self._lock:
            return super().incr(key, expiry, amount)


@lru_cache
def _item(rate: str) -> RateLimitItem:
    return parse(rate)


def _shared(uri: str) -> FixedWindowRateLimiter:
    from redis.backoff import NoBackoff  # an extra: not there where nothing is shared
    from redis.retry import Retry

    options: dict[str, Any] = {
        "wrap_exceptions": True, "key_prefix": "loop-gateway", "socket_timeout": _REDIS_TIMEOUT,
        "socket_connect_timeout": _REDIS_TIMEOUT, "retry": Retry(NoBackoff(), 0),
        "protocol": 2,  # counting takes no more, and servers before 6 know no other
    }
    return FixedWindowRateLimiter(cast(Storage, storage_from_string(uri, **options)))


def _counted(limiter: FixedWindowRateLimiter, item: RateLimitItem, name: str) -> Standing:
    """The standing after one more request; raises StorageError."""
    allowed = limiter.hit(item, name)
    stats = limiter.get_window_stats(item, name)
    reset = max(0.0, stats.reset_time - time.time())
    return Standing(item.amount, stats.remaining, reset, not allowed)
