"""What llama-servers say of themselves in GET /metrics, without waking one or keeping it awake.

To be asked that is work for a llama-server: it ends its sleep, and puts off the next. So an engine
is asked once after each time that it was used, and until then its last answer holds, as nothing of
it can have changed.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from app.engines.engine import Attached
from app.engines.fleet import Fleet
from app.engines.loaded import LoadedModels
from app.engines.props import parse_props
from app.engines.unit import Unit
from app.errors import GatewayError
from app.model_status import EngineText

_AT_ONCE = 8  # engines asked at the same time


@dataclass(frozen=True)
class _Known:
    """An engine's last answer, when it was asked for (monotonic clock), and of which start."""

    at: float
    start: int
    text: str = field(repr=False)


@dataclass(frozen=True)
class _Loaded:
    """An engine that has a model in memory; ``start`` tells its processes apart."""

    engine: Attached | Unit
    model: str
    start: int


class OwnMetrics:
    """Asks the engines that are loaded. Safe to use from many threads."""

    def __init__(self, fleet: Callable[[], Fleet], used: LoadedModels) -> None:
        """``fleet`` gives the engines of the configuration that counts now."""
        self._fleet = fleet
        self._used = used
        self._lock = threading.Lock()
        self._known: WeakKeyDictionary[Attached | Unit, _Known | None] = WeakKeyDictionary()

    def texts(self) -> list[EngineText]:
        """What each loaded llama-server says; those that do not answer at once are left out.

        Blocks for a second for every eight engines at most. Starts and wakes none.
        """
        loaded = [*self._attached(), *self._managed()]
        due = [each for each in loaded if self._is_due(each)]
        if due:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(self._ask, due))
        return [text for text in map(self._said, loaded) if text]

    def _attached(self) -> Iterator[_Loaded]:
        """Those that were used within the keep-alive, with the model that was used last."""
        models = [name for name in self._used.by_last_use() if self._used.until(name)[0]]
        for served, engine in self._fleet().attached():
            model = next((name for name in models if served.matches(name)), None)
            if model is not None:
                yield _Loaded(engine, model, 0)

    def _managed(self) -> Iterator[_Loaded]:
        for unit in self._fleet().started():
            if unit.loaded:
                yield _Loaded(unit, unit.model, unit.life.starts)

    def _is_due(self, loaded: _Loaded) -> bool:
        """Whether the engine was used after it was asked, or has never been asked."""
        known = self._of(loaded)
        unused_since = loaded.engine.admission.demand().unused_since
        return known is None or unused_since is None or unused_since >= known.at

    def _ask(self, loaded: _Loaded) -> None:
        at = time.monotonic()
        try:
            known = _Known(at, loaded.start, _asked(loaded.engine))
        except GatewayError:
            known = None  # whoever asks next tries again
        with self._lock:
            self._known[loaded.engine] = known

    def _of(self, loaded: _Loaded) -> _Known | None:
        with self._lock:
            known = self._known.get(loaded.engine)
        return known if known and known.start == loaded.start else None

    def _said(self, loaded: _Loaded) -> EngineText | None:
        known = self._of(loaded)
        if known is None or not known.text:
            return None
        return EngineText(loaded.engine.address, loaded.model, known.text)


def _asked(engine: Attached | Unit) -> str:
    """The engine's metrics; "" where it is no llama-server, sleeps, or has none."""
    facts = parse_props(*engine.ask_soon("/props"))
    if facts is None or not facts.is_llama_server or facts.sleeping:
        return ""
    status, body = engine.ask_soon("/metrics")
    return body.decode("utf-8", "replace") if status == 200 else ""
