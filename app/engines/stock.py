"""The engines that others run, each made once for its settings however often these are read."""

import threading
from collections.abc import Collection

from app.engines.admission import Admission
from app.engines.client import EngineClient
from app.engines.engine import Attached
from app.engines.failures import limits_of
from app.engines.policy import PolicyInForce
from app.engines.props import LIMITS
from app.settings import EngineSettings


class Stock:
    """All attached engines that there are. Safe to use from many threads."""

    def __init__(self, policy: PolicyInForce, connections: int) -> None:
        """Up to ``connections`` are kept open to each."""
        self._policy = policy
        self._connections = connections
        self._lock = threading.Lock()
        self._engines: dict[EngineSettings, Attached] = {}

    def engine(self, settings: EngineSettings) -> Attached:
        """The engine of these settings, which are whole: one that is there, or a new one."""
        with self._lock:
            found = self._engines.get(settings)
            if found is None:
                found = self._engines[settings] = self._made(settings)
            return found

    def claim(self, wanted: Collection[EngineSettings]) -> None:
        """Let those of these engines serve on that were to take no more calls."""
        with self._lock:
            for settings, engine in self._engines.items():
                if settings in wanted and engine.admission.retired:
                    engine.admission.resume()

    def retain(self, wanted: Collection[EngineSettings]) -> None:
        """Let all other engines take no more calls; those that have none are forgotten."""
        with self._lock:
            leaving = {key: each for key, each in self._engines.items() if key not in wanted}
            for settings, engine in leaving.items():
                engine.retire()
                if not engine.admission.demand().held:
                    del self._engines[settings]

    def leaving(self) -> list[Attached]:
        """The engines that take no more calls and still have some."""
        with self._lock:
            return [engine for engine in self._engines.values()
                    if engine.admission.retired and engine.admission.demand().held]

    def _made(self, settings: EngineSettings) -> Attached:
        client = EngineClient(
            settings.url, settings.api_key, limits_of(settings), self._connections)
        asker = EngineClient(settings.url, settings.api_key, LIMITS, connections=4)
        return Attached(settings, client, asker, Admission(self._policy, settings.slots))
