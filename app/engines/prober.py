"""Asks engines that have been quiet whether they are still there; never makes one load a model."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from app.engines.engine import Attached, Engine
from app.engines.fleet import Fleet
from app.engines.supervisor import Supervisor
from app.engines.unit import Unit
from app.errors import GatewayError, Kind

log = logging.getLogger(__name__)

_AT_ONCE = 8  # engines asked at the same time, so that dead ones do not hold up the others


class Prober:
    """One thread that looks at all engines every ``interval`` seconds, until it is closed."""

    def __init__(self, fleet: Fleet, supervisor: Supervisor, interval: float) -> None:
        self._fleet = fleet
        self._supervisor = supervisor
        self._interval = interval
        self._closed = threading.Event()

    def start(self) -> None:
        """Begin; the first look is after one interval."""
        threading.Thread(target=self._run, name="prober", daemon=True).start()

    def close(self) -> None:
        """Look no more."""
        self._closed.set()

    def _run(self) -> None:
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="probe") as pool:
            while not self._closed.wait(self._interval):
                for problem in pool.map(_caught(self._probe), self._due()):
                    if problem:
                        log.error("a probe failed", exc_info=problem)

    def _due(self) -> list[Engine]:
        """Engines that have said nothing for an interval, and of ours only those without calls."""
        for unit in self._supervisor.units():
            if unit.loaded and unit.command.outdated():
                self._supervisor.release(unit)  # whoever calls next gets the model as it is now
        quiet_since = time.monotonic() - self._interval
        engines: list[Engine] = [engine for _, engine in self._fleet.attached()]
        engines += [u for u in self._supervisor.units() if u.loaded and not u.in_use]
        return [engine for engine in engines if engine.health.answered_at <= quiet_since]

    def _probe(self, engine: Engine) -> None:
        problem = _problem(engine)
        if self._closed.is_set():
            return
        if problem is None:
            engine.health.probed()
        elif isinstance(engine, Unit):
            if not engine.in_use:  # a call that has begun meanwhile keeps time itself
                engine.failed_probe(problem)
        else:
            engine.health.missed(problem)


def _problem(engine: Engine) -> str | None:
    try:
        status, body = engine.ask("/health")
    except GatewayError as error:
        if error.kind is not Kind.ENGINE_TIMEOUT:  # some do not answer while they load
            engine.loading.over()
        return error.message
    if isinstance(engine, Attached):
        engine.loading.hear(status, body)
        if status == 503:  # it loads, or is busy: it is there
            return None
    return f"its /health answered {status}" if status >= 500 else None


def _caught(probe: Callable[[Engine], None]) -> Callable[[Engine], BaseException | None]:
    """The outermost edge of a probe: one that fails must not end the others."""

    def run(engine: Engine) -> BaseException | None:
        try:
            probe(engine)
        except Exception as error:
            return error
        return None

    return run
