"""What is measured and how much of it: loads in their order, and the names of their measures."""

from __future__ import annotations

from dataclasses import dataclass, field

BUSY = 16  # connections
FEW, FEW_PACE = 100, 100  # streams, ms between two events of one
MANY_PACE = 200
_WARM = 0.3  # seconds


@dataclass(frozen=True)
class Step:
    """One load on every subject; `names`: what the load calls a measure → what the results do."""

    load: str
    seconds: float
    options: dict[str, int]
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """How much is measured; times in seconds."""

    rounds: int
    streams: int  # the many
    alone: float  # one plain request at a time
    busy: float  # many at a time
    paced: float  # while the few streams run
    held: float  # while the many streams run

    def steps(self) -> list[Step]:
        """The loads of one round; the first only warms up."""
        return [
            Step("plain", _WARM, {"connections": BUSY}),
            Step("plain", self.alone, {"connections": 1},
                 {"cpu": "alone cpu", "p50": "alone p50", "p99": "alone p99"}),
            Step("plain", self.busy, {"connections": BUSY},
                 {"cpu": "busy cpu", "rate": "busy rate"}),
            Step("streams", self.paced, {"count": FEW, "every_ms": FEW_PACE}, _of("few")),
            Step("streams", self.held, {"count": self.streams, "every_ms": MANY_PACE}, _of("many")),
        ]


FULL = Plan(rounds=7, streams=1000, alone=1.0, busy=1.5, paced=3.0, held=1.0)
QUICK = Plan(rounds=2, streams=150, alone=0.4, busy=0.4, paced=1.0, held=0.4)


def _of(streams: str) -> dict[str, str]:
    return {name: f"{streams} {name}" for name in ("cpu", "p50", "p99", "memory", "faults")}
