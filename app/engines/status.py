"""What is loaded, loading and failed, and what every engine is doing: the truth of this moment."""

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from app.engines.engine import Attached, Engine
from app.engines.fleet import Fleet
from app.engines.loaded import Clock, LoadedModels
from app.engines.steady import steadily
from app.engines.unit import Unit
from app.engines.unit_facts import State
from app.errors import GatewayError
from app.model_status import UNLOADED, EngineStatus, ManagedStatus, ModelStatus

_FRESH = 1.0  # s; an engine that answered so lately is there
_VALUES = {
    State.READY: "loaded", State.STARTING: "loading", State.FAILED: "failed",
    State.STOPPING: "unloaded", State.STOPPED: "unloaded",
}
_LEAVING = State.STOPPING.value  # whatever takes no more calls
_ORDER = ("loaded", "loading", "failed", "unloaded")  # what several engines say, the best first


class Status:
    """Reads the state of engines; changes nothing. Safe to use from many threads."""

    def __init__(self, fleet: Fleet, used: LoadedModels, clock: Clock) -> None:
        self._fleet = fleet
        self._used = used
        self._clock = clock

    def of(self, model: str, ask: bool = False) -> ModelStatus:
        """The status of a model of the registry.

        With ``ask`` an attached engine that has been quiet is asked whether it is still there,
        which blocks for a third of a second at most.
        """
        found = [self._seen(engine, model, ask) for engine in self._fleet.engines(model)]
        return min(found, key=lambda s: _ORDER.index(s.value), default=UNLOADED)

    def latest(self) -> str | None:
        """The model that was used last and is still loaded, if there is one."""
        return next((m for m in self._used.by_last_use() if self.of(m).loaded), None)

    def present(self) -> dict[str, ModelStatus]:
        """Every model that is loaded, loading or failed; asks engines as ``of`` does."""
        names = {*self._used.by_last_use(), *(unit.model for unit in self._fleet.started()),
                 *self._fleet.loading()}
        found = {name: self.of(name, ask=True) for name in names}
        return {name: status for name, status in found.items() if status.value != "unloaded"}

    def engines(self) -> list[EngineStatus]:
        """All engines; of a command one for every model that it serves.

        Last those that the configuration has no more, until their last call has ended.
        """
        return steadily(self._fleet.units, self._engines)

    def _engines(self) -> list[EngineStatus]:
        attached = [_attached_status(engine, served.patterns)
                    for served, engine in self._fleet.attached()]
        managed = [self._managed_status(unit) for unit in self._fleet.managed()]
        others, units = self._fleet.leaving()
        leaving = [_attached_status(engine, ()) for engine in others]
        leaving += [self._managed_status(unit) for unit in units]
        leaving = [replace(each, state=_LEAVING) for each in leaving]
        return list(_told_apart([*attached, *managed, *leaving]))

    def _seen(self, engine: Engine, model: str, ask: bool) -> ModelStatus:
        if isinstance(engine, Unit):
            return self._unit_status(engine)
        assert isinstance(engine, Attached)
        counts, until = self._used.until(model)
        if engine.loading.since is not None:
            return ModelStatus("loading")
        if not counts or engine.health.suspect or (ask and not _is_there(engine)):
            return UNLOADED
        return ModelStatus("loaded", until, engine.admission.running > 0)

    def _unit_status(self, unit: Unit) -> ModelStatus:
        life, demand = unit.life, unit.admission.demand()
        in_use = demand.unused_since is None
        failed = life.state is State.FAILED
        return ModelStatus(
            _VALUES[life.state], self._expiry(unit), in_use,
            unit.resident(), life.error if failed else None)

    def _managed_status(self, unit: Unit) -> EngineStatus:
        life, demand = unit.life, unit.admission.demand()
        process = life.process
        idle = life.state is State.READY and demand.unused_since is not None
        return EngineStatus(
            unit.address, (unit.model,), life.state.value, unit.admission.slots, demand.running,
            demand.waiting, unit.health.strikes, life.error or unit.health.error,
            ManagedStatus(
                f"http://127.0.0.1:{life.port}" if process else None,
                process.pid if process else None, unit.command.memory(),
                unit.resident(), self._expiry(unit) if idle else None,
                life.starts, life.loads, life.restarts, life.evictions))

    def _expiry(self, unit: Unit) -> datetime | None:
        """When the unit is stopped if nobody calls; None for never, or if it does not run."""
        if unit.life.state is not State.READY or unit.pinned or math.isinf(unit.keep):
            return None
        since = unit.admission.demand().unused_since
        idle = 0.0 if since is None else time.monotonic() - since
        try:
            return self._clock() + timedelta(seconds=max(unit.keep - idle, 0.0))
        except OverflowError:
            return None


def _told_apart(engines: Iterable[EngineStatus]) -> Iterator[EngineStatus]:
    """The engines with an id each: at one address there may be one that leaves beside another."""
    seen: Counter[str] = Counter()
    for engine in engines:
        seen[engine.id] += 1
        count = seen[engine.id]
        yield engine if count == 1 else replace(engine, id=f"{engine.id} #{count}")


def _attached_status(engine: Attached, models: tuple[str, ...]) -> EngineStatus:
    demand = engine.admission.demand()
    loading = engine.loading.since is not None
    state = "loading" if loading else "suspect" if engine.health.suspect else "ready"
    return EngineStatus(
        engine.address, models, state, engine.admission.slots, demand.running, demand.waiting,
        engine.health.strikes, engine.health.error)


def _is_there(engine: Attached) -> bool:
    if time.monotonic() - engine.health.answered_at < _FRESH:
        return True
    try:
        engine.ask_soon("/health")
    except GatewayError:
        return False
    return True
