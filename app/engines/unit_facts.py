"""What the policy sees of managed engines. Times are those of one monotonic clock, in seconds."""

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """Where a managed engine is in its life."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    FAILED = "failed"  # as stopped, with a reason


@dataclass(frozen=True)
class UnitFacts:
    """One managed engine: one command with one model.

    ``memory`` is what it takes or would take as estimated (bytes), ``resident`` what its processes
    have been seen to take, ``held`` how many calls keep it from being stopped, ``waiting`` how many
    want it. ``unused_since`` is None while there are any of these. ``wanted_since`` is since when
    the oldest of ``waiting`` waits for the engine's turn, not from before its last turn ended.
    """

    key: str
    state: State
    memory: int
    held: int = 0
    waiting: int = 0
    wanted_since: float | None = None
    unused_since: float | None = None
    ready_since: float = 0.0
    load_time: float = 0.0  # s; of its last start
    keep: float = 300.0  # s of idleness; inf for ever
    not_before: float = 0.0  # no start sooner: the pause after a failure
    pinned: bool = False
    preload: bool = False  # to be started as soon as it fits, though nobody calls
    resident: int = 0

    @property
    def has_process(self) -> bool:
        """Whether it takes memory."""
        return self.state in (State.STARTING, State.READY, State.STOPPING)

    @property
    def takes(self) -> int:
        """Bytes that count as its own: an engine may grow over what was estimated."""
        return max(self.memory, self.resident) if self.has_process else 0

    def expired(self, now: float) -> bool:
        """Whether it has been idle for as long as it is to stay."""
        return self.unused_since is not None and self.unused_since + self.keep <= now

    @property
    def idle(self) -> bool:
        """Whether it runs and nobody wants it."""
        return self.state is State.READY and not self.held and not self.waiting


@dataclass(frozen=True)
class Rules:
    """The bounds: bytes (None: none), and seconds."""

    budget: int | None
    min_residency: float
    max_wait: float
