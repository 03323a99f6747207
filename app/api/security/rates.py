"""How many requests a key may make in a time, and how many calls at a time."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from app.api.security.standing import Standing
from app.errors import GatewayError, Kind

if TYPE_CHECKING:
    from app.api.security.counters import Counters

log = logging.getLogger(__name__)

_AWAY = 10.0  # s; a server that failed is not asked for so long


class Rates:
    """Counts the requests of each key that has a rate. Safe to use from many threads."""

    def __init__(self, storage: str, clock: Callable[[], float] = time.monotonic) -> None:
        """``storage`` is memory:// or the address of a Redis server that several gateways share."""
        self._lock = threading.Lock()
        self._shared = None if storage.startswith("memory:") else _counters(storage)
        self._clock = clock
        self._away_until = clock()

    def count(self, name: str, rate: str) -> Standing:
        """Count a request of the key with this name and rate.

        Blocks for a Redis server, half a second at most for each of its answers; while it does not
        give any, this gateway counts by itself.
        """
        if self._shared is None or self._clock() < self._away_until:
            return self._own.count(name, rate)
        from app.api.security.counters import Unreachable

        try:
            return self._shared.count(name, rate)
        except Unreachable as error:
            self._away_until = self._clock() + _AWAY
            log.warning("server.rate-storage fails (%s); requests are counted here", error)
            return self._own.count(name, rate)

    @property
    def _own(self) -> "Counters":
        with self._lock:
            return self._made

    @cached_property
    def _made(self) -> "Counters":
        return _counters("memory://")


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


def _counters(storage: str) -> "Counters":
    from app.api.security.counters import Counters  # not before there is something to count

    return Counters(storage)
