"""Which engines make room for another one. Pure: facts in, decision out."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.engines.unit_facts import Rules, State, UnitFacts


@dataclass(frozen=True)
class Room:
    """How room is made: engines to stop, and engines to hold until their calls have ended.

    ``enough`` is whether that makes enough room. If not, nobody is stopped in vain: ``awaited`` are
    the engines whose memory it will be, and ``look_at`` is when there may be more to choose from.
    """

    enough: bool
    stop: tuple[str, ...] = ()
    hold: tuple[str, ...] = ()
    look_at: float | None = None
    awaited: tuple[str, ...] = ()


def make_room(
    needed: int, wanted_since: float, units: Sequence[UnitFacts], now: float, rules: Rules,
    taken: Collection[str] = (),
) -> Room:
    """How to make ``needed`` bytes free for a model that is wanted since then.

    1. Idle engines, the least recently used first; one that has just come is waited for rather than
       one passed over that was used later.
    2. Then engines whose turn is over, the one that began its turn first: those without a running
       call are stopped, the others take no more calls and are stopped when theirs have ended.
    3. If that is not enough, nobody yet; the engines whose turn ends first are awaited.
    No engine goes that is pinned, ``taken`` already, or was made ready less than
    ``rules.min_residency`` ago.
    """
    quantum = turn_length(units, rules)
    ends = {u.key: _end(u, wanted_since, quantum, rules) for u in units
            if u.state in (State.READY, State.STARTING) and not u.pinned and u.key not in taken}
    chosen = _enough(needed, sorted(
        (u for u in units if u.key in ends), key=lambda u: _preference(u, ends[u.key], now)))
    if sum(u.takes for u in chosen) < needed or any(ends[u.key] > now for u in chosen):
        later = [end for end in ends.values() if now < end < math.inf]
        return Room(False, look_at=min(later, default=None),
                    awaited=tuple(u.key for u in chosen))
    stop = tuple(u.key for u in chosen if not u.held)
    return Room(True, stop, tuple(u.key for u in chosen if u.held))


def relief(
    surplus: int, units: Sequence[UnitFacts], now: float, rules: Rules, taken: Collection[str] = (),
) -> Room:
    """How those that run are to take ``surplus`` bytes less, as they are over the budget.

    1. Idle engines, the least recently used first; one that has just come is waited for.
    2. Then engines whose turn is over, the one that began its turn first: as in ``make_room``. But
       not one that alone is over the budget: it would be so again, and goes once it is idle.
    Who can go does so at once, even if that is not enough. No engine goes that is pinned, ``taken``
    already, starting, or was made ready less than ``rules.min_residency`` ago.
    """
    assert rules.budget is not None
    quantum = turn_length(units, rules)
    ends = {u.key: _end(u, -math.inf, quantum, rules) for u in units
            if u.state is State.READY and not u.pinned and u.key not in taken
            and (u.idle or u.takes <= rules.budget)}
    chosen = _enough(surplus, sorted(
        (u for u in units if u.key in ends), key=lambda u: _preference(u, ends[u.key], now)))
    due = [u for u in chosen if ends[u.key] <= now]
    later = [ends[u.key] for u in chosen if ends[u.key] > now]
    return Room(sum(u.takes for u in due) >= surplus, tuple(u.key for u in due if not u.held),
                tuple(u.key for u in due if u.held), min(later, default=None))


def turn_length(units: Sequence[UnitFacts], rules: Rules) -> float:
    """Seconds for which an engine may serve while other models wait for its memory.

    Every model that wants the memory gets the same share of the longest wait, its loading included,
    so that the last one's turn comes before its calls have waited too long. Pinned engines take no
    turns.
    """
    wanted = [u for u in units if (u.waiting or u.held) and not u.pinned]
    loading = max((u.load_time for u in wanted), default=0.0)
    return max(rules.min_residency, rules.max_wait / max(len(wanted), 1) - loading)


def _end(unit: UnitFacts, wanted_since: float, quantum: float, rules: Rules) -> float:
    """When the engine may be taken: an idle one once it has been there for long enough."""
    if unit.state is State.STARTING:
        return math.inf
    resident = unit.ready_since + rules.min_residency
    if unit.idle:
        return resident
    return max(resident, max(unit.ready_since, wanted_since) + quantum)


def _preference(unit: UnitFacts, end: float, now: float) -> tuple[bool, float, float, str]:
    """Sorts engines by how soon they are to go."""
    if unit.idle:
        return False, now, unit.unused_since or unit.ready_since, unit.key
    return True, max(end, now), unit.ready_since, unit.key


def _enough(needed: int, units: Sequence[UnitFacts]) -> list[UnitFacts]:
    """The first of the units that have so much memory together; all if that is too little."""
    chosen: list[UnitFacts] = []
    for unit in units:
        if needed <= 0:
            break
        chosen.append(unit)
        needed -= unit.takes
    return chosen
