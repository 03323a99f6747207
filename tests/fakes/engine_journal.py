"""What engines noted of themselves: the journal of `engine_command`, read while it is written.

Events: `started` (with `port`, `arguments` and the `variables` LOOP_…), `beside` (the models of
`others` that ran at that moment), `ready`, `begin` and `end` of a call, `left` (its client did),
`crash`, `terminated`, and `ignored` for a SIGTERM without effect.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.fakes.processes import wait_until


class Entry(NamedTuple):
    """One event; `at` is monotonic time in seconds, the same clock for all processes."""

    at: float
    event: str
    model: str
    pid: int
    id: str
    more: dict[str, Any]


class EngineJournal:
    """The journal at `path`, which need not be there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self, event: str = "", model: str = "", id: str = "") -> list[Entry]:
        """What was noted so far of this event, model and call, in order; "" is any."""
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        found = [_entry(json.loads(line)) for line in text.splitlines()]
        return [entry for entry in found if event in ("", entry.event)
                and model in ("", entry.model) and id in ("", entry.id)]

    def wait_for(self, event: str, model: str = "", id: str = "", count: int = 1) -> list[Entry]:
        """As `entries`, once there are `count`; raises AssertionError when they do not come."""
        wait_until(lambda: len(self.entries(event, model, id)) >= count,
                   f"{count} times '{event}' of {model or id or 'any model'}")
        return self.entries(event, model, id)

    def one(self, event: str, model: str = "", id: str = "") -> Entry:
        """The one entry of this kind, waited for; raises AssertionError when there are more."""
        [found] = self.wait_for(event, model, id)
        return found

    def order(self, event: str, model: str = "") -> list[str]:
        """The ids of calls in the order of this event."""
        return [entry.id for entry in self.entries(event, model)]

    def most_at_once(self, model: str) -> int:
        """The largest number of the model's calls that ran at a time."""
        steps = {"begin": 1, "end": -1, "left": -1}
        running, most = 0, 0
        for entry in self.entries(model=model):
            running += steps.get(entry.event, 0)
            most = max(most, running)
        return most


def _entry(line: dict[str, Any]) -> Entry:
    fixed = {name: line.pop(name) for name in ("at", "event", "model", "pid")}
    return Entry(**fixed, id=line.pop("id", ""), more=line)
