"""What is measured and how much of it: loads in their order, and the names of their measures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.bench.exchange import CHAT, OLLAMA_CHAT

BUSY = 16  # connections
FEW, FEW_PACE = 100, 200  # streams, ms between two events of one
MANY_PACE = 200
MODELS = 1000  # of the gateway whose lists are asked for
PICTURE = 20_000_000  # bytes of base64
_WARM = 0.3  # seconds


@dataclass(frozen=True)
class Step:
    """One load on every subject; `names`: what the load calls a measure → what the results do."""

    load: str
    seconds: float
    options: dict[str, Any]
    names: dict[str, str] = field(default_factory=dict)
    of_all: bool = True  # else of the gateway alone


@dataclass(frozen=True)
class Plan:
    """How much is measured; times in seconds."""

    rounds: int
    streams: int  # the many
    alone: float  # one plain request at a time
    busy: float  # many at a time
    paced: float  # while the few streams run
    held: float  # while the many streams run
    pictures: float
    lists: float

    def steps(self) -> list[Step]:
        """The loads of one round; the first only warms up."""
        return [
            Step("plain", _WARM, {"connections": BUSY}),
            Step("plain", self.alone, {"connections": 1},
                 {"cpu": "alone cpu", "p50": "alone p50", "p99": "alone p99"}),
            Step("plain", self.busy, {"connections": BUSY},
                 {"cpu": "busy cpu", "rate": "busy rate"}),
            _streams("few", self.paced, CHAT, FEW, FEW_PACE),
            _streams("ollama", self.paced, OLLAMA_CHAT, FEW, FEW_PACE, of_all=False),
            _streams("many", self.held, CHAT, self.streams, MANY_PACE),
            Step("picture", self.pictures, {"size": PICTURE},
                 _named("picture", ("cpu", "of_reading", "memory", "of_body"))),
        ]


FULL = Plan(rounds=7, streams=1000, alone=1.0, busy=1.5, paced=3.0, held=1.0, pictures=1.0,
            lists=1.0)
QUICK = Plan(rounds=2, streams=150, alone=0.4, busy=0.4, paced=1.0, held=0.4, pictures=0.1,
             lists=0.4)


def _streams(
    key: str, seconds: float, path: str, count: int, every_ms: int, of_all: bool = True
) -> Step:
    options = {"path": path, "count": count, "every_ms": every_ms}
    names = _named(key, ("cpu", "p50", "p99", "memory", "faults"))
    return Step("streams", seconds, options, names, of_all)


def _named(key: str, names: tuple[str, ...]) -> dict[str, str]:
    return {name: f"{key} {name}" for name in names}
