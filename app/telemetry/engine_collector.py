"""What engines are doing, as Prometheus metrics that are made when somebody asks."""

from collections.abc import Callable, Iterable

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from app.model_status import EngineStatus
from app.telemetry.families import Labels, Values, counter, gauge

_STATES = {  # of attached engines, of managed ones
    False: ("ready", "suspect", "loading"),
    True: ("stopped", "starting", "ready", "stopping", "failed"),
}
_LABELS = ("engine", "model")


class EngineCollector(Collector):
    """Reads the state of the engines anew each time."""

    def __init__(
        self, engines: Callable[[], list[EngineStatus]],
        memory: Callable[[], tuple[int | None, int]],
    ) -> None:
        """``memory`` gives the bytes that managed engines may take and do take."""
        self._engines = engines
        self._memory = memory

    def describe(self) -> Iterable[Metric]:
        """Nothing: whoever registers this is not to ask the engines' state."""
        return []

    def collect(self) -> Iterable[Metric]:
        """The metrics of this moment."""
        engines = self._engines()
        states = (((*_label(e), state), float(state == e.state))
                  for e in engines for state in _STATES[e.managed is not None])
        yield gauge("loop_engine_state", "1 for the state that an engine is in",
                    (*_LABELS, "state"), states)
        yield _gauge("loop_queue_depth", "Calls that wait for an engine",
                     ((_label(e), e.queued) for e in engines))
        yield _gauge("loop_engine_calls", "Calls that hold a slot of an engine",
                     ((_label(e), e.running) for e in engines))
        yield _gauge("loop_engine_slots", "Calls that an engine answers at a time, where bounded",
                     ((_label(e), e.slots) for e in engines if e.slots is not None))
        yield from _of_managed(engines)
        yield from self._of_memory()

    def _of_memory(self) -> Iterable[Metric]:
        budget, used = self._memory()
        yield gauge("loop_memory_used_bytes", "What managed engines take together, each the larger "
                    "of its estimate and its resident memory", (), [((), used)])
        if budget is not None:
            yield gauge("loop_memory_budget_bytes", "loop.memory-budget", (), [((), budget)])


def _of_managed(engines: list[EngineStatus]) -> Iterable[Metric]:
    managed = [(_label(e), e.managed) for e in engines if e.managed]
    yield _gauge("loop_engine_memory_bytes", "Resident memory of an engine's processes", (
        (label, m.memory) for label, m in managed if m.memory is not None))
    yield _counter("loop_engine_starts", "Starts of an engine",
                   ((label, m.starts) for label, m in managed))
    yield _counter("loop_engine_loads", "Starts of an engine that ended with it ready",
                   ((label, m.loads) for label, m in managed))
    yield _counter("loop_engine_restarts", "Starts of an engine after it had failed or crashed",
                   ((label, m.restarts) for label, m in managed))
    yield _counter("loop_engine_evictions", "Stops of an engine to make room for another model",
                   ((label, m.evictions) for label, m in managed))


def _gauge(name: str, said: str, values: Values) -> Metric:
    return gauge(name, said, _LABELS, values)


def _counter(name: str, said: str, values: Values) -> Metric:
    return counter(name, said, _LABELS, values)


def _label(engine: EngineStatus) -> Labels:
    """The engine's id and, where it has one, its one model."""
    return engine.id, engine.models[0] if len(engine.models) == 1 else ""
