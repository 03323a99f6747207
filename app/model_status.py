"""Whether models are loaded, and what their engines are doing: facts for lists."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class ModelStatus:
    """One model at one moment.

    ``value`` is loaded, loading, unloaded or failed, the last with its ``error``. ``until`` is when
    it will be unloaded if nobody calls it, None for never or where that is not known; ``in_use``
    whether calls run or wait. ``memory`` is in bytes, None for an engine that is not ours.
    """

    value: str
    until: datetime | None = None
    in_use: bool = False
    memory: int | None = None
    error: str | None = None

    @property
    def loaded(self) -> bool:
        """Whether the model answers at once."""
        return self.value == "loaded"


UNLOADED = ModelStatus("unloaded")


@dataclass(frozen=True)
class ManagedStatus:
    """What only engines have that the gateway runs."""

    url: str | None
    pid: int | None
    memory_estimate: int
    memory: int | None
    idle_until: datetime | None
    starts: int
    loads: int = 0      # starts that ended with it ready
    restarts: int = 0   # starts after it had failed
    evictions: int = 0  # stops to make room for others


@dataclass(frozen=True)
class EngineStatus:
    """One engine at one moment; ``slots`` is None where there is no bound."""

    id: str
    models: tuple[str, ...]
    state: str
    slots: int | None
    running: int = 0
    queued: int = 0
    strikes: int = 0
    last_error: str | None = None
    managed: ManagedStatus | None = None


@dataclass(frozen=True)
class EngineText:
    """What one engine answers to GET /metrics, as it runs this model."""

    engine: str
    model: str
    text: str = field(repr=False)
