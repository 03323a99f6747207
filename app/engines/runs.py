"""Which models have calls that run, and which may have none."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import GatewayError


class Runs:
    """Counts the calls of each model. Safe to use from many threads; nothing here blocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._barred: Counter[str] = Counter()

    @contextmanager
    def of(self, model: str) -> Iterator[None]:
        """A call of the model, from its wait for an engine to the end of its answer.

        Raises GatewayError, as for a model that is not there, where it may have none.
        """
        with self._lock:
            if model in self._barred:
                raise GatewayError.unknown_model(model)
            self._running[model] += 1
        try:
            yield
        finally:
            self._less(self._running, model)

    @contextmanager
    def none_of(self, model: str) -> Iterator[None]:
        """Within it no call of the model begins; those that run go on."""
        with self._lock:
            self._barred[model] += 1
        try:
            yield
        finally:
            self._less(self._barred, model)

    def over(self, model: str) -> bool:
        """Whether no call of the model runs."""
        with self._lock:
            return model not in self._running

    def _less(self, counter: "Counter[str]", model: str) -> None:
        with self._lock:
            counter[model] -= 1
            if not counter[model]:
                del counter[model]
