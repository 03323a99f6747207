"""Which engines make room for another one. Pure: facts in, decision out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.engines.unit_facts import Rules, State, UnitFacts


@dataclass(frozen=True)
class Room:
    """How room is made: engines to stop, and engines to hold until their calls have ended.

    ``enough`` is whether that makes enough room; if not nobody is stopped in vain, and ``look_at``
    is when there may be more to choose from.
    """

    enough: bool
    stop: tuple[str, ...] = ()
    hold: tuple[str, ...] = ()
    look_at: float | None = None


def make_room(
    needed: int, wanted_since: float, units: Sequence[UnitFacts], now: float, rules: Rules,
    taken: Collection[str] = (),
) -> Room:
    """How to make ``needed`` bytes free for a model that is wanted since then.

    1. Idle engines, the least recently used first.
    2. Then engines whose turn is over, the one that began its turn first: those without a running
       call are stopped, the others take no more calls and are stopped when theirs have ended.
    No engine goes that is pinned, ``taken`` already, or was made ready less than
    ``rules.min_residency`` ago.
    """
    able = [u for u in units
            if u.state is State.READY and not u.pinned and u.key not in taken]
    quantum = turn_length(units, rules)
    ends = {u.key: _end(u, wanted_since, quantum, rules) for u in able}
    over = [u for u in able if ends[u.key] <= now]
    over.sort(key=lambda u: (not u.idle, u.unused_since if u.idle else u.ready_since, u.key))
    chosen: list[UnitFacts] = []
    for unit in over:
        if needed <= 0:
            break
        chosen.append(unit)
        needed -= unit.memory
    if needed > 0:
        return Room(False, look_at=min((e for e in ends.values() if e > now), default=None))
    stop = tuple(u.key for u in chosen if not u.held)
    return Room(True, stop, tuple(u.key for u in chosen if u.held))


def turn_length(units: Sequence[UnitFacts], rules: Rules) -> float:
    """Seconds for which an engine may serve while other models wait for its memory.

    Every model that wants the memory gets the same share of the longest wait, its loading included,
    so that the last one's turn comes before its calls have waited too long.
    """
    wanted = [u for u in units if u.waiting or u.held]
    loading = max((u.load_time for u in wanted), default=0.0)
    return max(rules.min_residency, rules.max_wait / max(len(wanted), 1) - loading)


def _end(unit: UnitFacts, wanted_since: float, quantum: float, rules: Rules) -> float:
    """When the engine may be taken: an idle one once it has been there for long enough."""
    resident = unit.ready_since + rules.min_residency
    if unit.idle:
        return resident
    return max(resident, max(unit.ready_since, wanted_since) + quantum)
