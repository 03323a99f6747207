"""The counters behind the rates of keys: those of the library ``limits``, or a Redis server's.

``limits`` takes 55 ms and 5 MB to load, so only who has something to count imports this.
"""

import threading
import time
from functools import lru_cache
from typing import Any, cast

from limits import RateLimitItem, parse
from limits.errors import StorageError
from limits.storage import MemoryStorage, Storage, storage_from_string
from limits.strategies import FixedWindowRateLimiter

from app.api.security.standing import Standing

_REDIS_TIMEOUT = 0.5  # s; a counter is not worth more waiting


class Unreachable(Exception):
    """The server that counts gives no answer; the message says why."""


class Counters:
    """Counts by name and rate. Safe to use from many threads."""

    def __init__(self, storage: str) -> None:
        """``storage`` is memory:// or the address of a Redis server."""
        own = storage.startswith("memory:")
        self._limiter = FixedWindowRateLimiter(_Memory() if own else _redis(storage))

    def count(self, name: str, rate: str) -> Standing:
        """Count one more request.

        Blocks for a Redis server, half a second at most for each of its answers; raises
        Unreachable.
        """
        item, limiter = _item(rate), self._limiter
        try:
            allowed = limiter.hit(item, name)
            stats = limiter.get_window_stats(item, name)
        except StorageError as error:
            raise Unreachable(type(error.__cause__ or error).__name__) from error
        reset = max(0.0, stats.reset_time - time.time())
        return Standing(item.amount, stats.remaining, reset, not allowed)


class _Idle(threading.Timer):
    """A timer that is never started, and says that it runs."""

    def is_alive(self) -> bool:
        return True


class _Memory(MemoryStorage):
    """One counter per key, for ever: no thread is started to forget old ones.

    The library starts one within every 10 ms in which something is counted, which costs more than
    all else here. Its counters are exact under one lock only.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self.timer.cancel()
        self.timer.join()
        self.timer = _Idle(0, lambda: None)

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """As MemoryStorage.incr."""
        with self._lock:
            return super().incr(key, expiry, amount)


@lru_cache
def _item(rate: str) -> RateLimitItem:
    return parse(rate)


def _redis(uri: str) -> Storage:
    from redis.backoff import NoBackoff  # an extra: not there where nothing is shared
    from redis.retry import Retry

    options: dict[str, Any] = {
        "wrap_exceptions": True, "key_prefix": "loop-gateway", "socket_timeout": _REDIS_TIMEOUT,
        "socket_connect_timeout": _REDIS_TIMEOUT, "retry": Retry(NoBackoff(), 0),
        "protocol": 2,  # counting takes no more, and servers before 6 know no other
    }
    return cast(Storage, storage_from_string(uri, **options))
