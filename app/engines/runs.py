"""Which models have requests that use them, and which may have none."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from app.errors import GatewayError

Key = TypeVar("Key", str, int)


class Runs:
    """Who uses which model. Safe to use from many threads; nothing here blocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, Counter[int]] = {}  # model → request → how often it is within
        self._barred: Counter[str] = Counter()

    @contextmanager
    def of(self, model: str, request: object) -> Iterator[None]:
        """A use of the model by a request, from before its wait for an engine to its answer's end.

        Raises GatewayError, as for a model that is not there, where that may have none; a request
        that is using it already may go on to do so.
        """
        key = id(request)
        with self._lock:
            users = self._running.get(model, Counter())
            if model in self._barred and key not in users:
                raise GatewayError.unknown_model(model)
            users[key] += 1
            self._running[model] = users
        try:
            yield
        finally:
            self._leave(model, key)

    @contextmanager
    def none_of(self, model: str) -> Iterator[None]:
        """Within it no request begins to use the model; those that do go on."""
        with self._lock:
            self._barred[model] += 1
        try:
            yield
        finally:
            with self._lock:
                _less(self._barred, model)

    def over(self, model: str) -> bool:
        """Whether no request uses the model."""
        with self._lock:
            return model not in self._running

    def _leave(self, model: str, key: int) -> None:
        with self._lock:
            users = self._running[model]
            _less(users, key)
            if not users:
                del self._running[model]


def _less(counter: Counter[Key], key: Key) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
