"""Which engines to start, stop and hold now. Pure: facts in, decision out; the supervisor acts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.engines.eviction import Room, make_room, relief
from app.engines.unit_facts import Rules, State, UnitFacts


@dataclass
class Plan:
    """What to do now, by the keys of engines, and when to look again if nothing happens before."""

    start: list[str] = field(default_factory=list)
    stop: list[str] = field(default_factory=list)
    hold: list[str] = field(default_factory=list)
    refuse: list[str] = field(default_factory=list)  # they alone are over the budget
    look_at: float | None = None

    def look_by(self, when: float | None) -> None:
        """Look again at ``when`` or sooner."""
        if when is not None:
            self.look_at = when if self.look_at is None else min(self.look_at, when)


def plan(units: Sequence[UnitFacts], now: float, rules: Rules) -> Plan:
    """What to do with these engines.

    1. Refuse the calls of a model that is not there and can never fit beside those that are never
       stopped.
    2. Stop who has been idle for its keep-alive.
    3. Where those that run take more than the budget, which may have become less and they more,
       stop idle ones, and let others whose turn is over end their calls first, until they fit.
    4. Start the wanted ones, whose call waits longest first, where they fit.
    5. For one that does not fit make room, as soon as that is possible; the memory it needs is its
       own from then on, and nobody whose call came later gets it.
    6. Start those that are to be there from the beginning, where they fit without all that.
    """
    made = Plan()
    made.refuse = [u.key for u in units if u.waiting and not can_fit(u, units, rules.budget)
                   and u.state not in (State.STARTING, State.READY)]
    _stop_idle(units, now, made)
    _start_wanted(units, now, rules, made)
    return made


def can_fit(unit: UnitFacts, units: Sequence[UnitFacts], budget: int | None) -> bool:
    """Whether the unit would fit if every engine that may be stopped were."""
    pinned = sum(u.takes for u in units if u.pinned and u.key != unit.key)
    return budget is None or unit.memory + pinned <= budget


def _stop_idle(units: Sequence[UnitFacts], now: float, made: Plan) -> None:
    for unit in units:
        if unit.state is not State.READY or unit.pinned:
            continue
        # Who is in use cannot have been idle for long enough any sooner.
        end = (now if unit.unused_since is None else unit.unused_since) + unit.keep
        if unit.idle and end <= now:
            made.stop.append(unit.key)
        elif now < end < math.inf:
            made.look_by(end)


def _start_wanted(units: Sequence[UnitFacts], now: float, rules: Rules, made: Plan) -> None:
    """Branches 3 to 6."""
    ledger = _Ledger(units, rules, made)
    ledger.relieve(units, now)
    for unit in sorted(units, key=_turn):
        if unit.state not in (State.STOPPED, State.FAILED) or unit.key in made.refuse:
            continue
        if not unit.waiting and not unit.preload:
            continue
        if unit.not_before > now:
            made.look_by(unit.not_before)
        elif ledger.fits(unit.memory):
            ledger.start(unit)
        elif unit.waiting:
            ledger.reserve(unit, units, now)


def _turn(unit: UnitFacts) -> tuple[bool, float, str]:
    since = unit.wanted_since
    return since is None, 0.0 if since is None else since, unit.key


class _Ledger:
    """The memory that is in use, that is to be free, and that is promised."""

    def __init__(self, units: Sequence[UnitFacts], rules: Rules, made: Plan) -> None:
        self._rules = rules
        self._made = made
        self._takes = {u.key: u.takes for u in units}
        self._used = sum(self._takes.values())
        stopping = (u.key for u in units if u.state is State.STOPPING)
        self._leaving = {*stopping, *made.stop}  # the units whose memory somebody else gets
        self._promised = 0

    def relieve(self, units: Sequence[UnitFacts], now: float) -> None:
        """Bring what is in use back into the budget, as far as that is possible now."""
        budget = self._rules.budget
        if budget is not None and self._later(0) > budget:
            surplus = self._later(0) - budget
            self._apply(relief(surplus, units, now, self._rules, self._leaving))

    def fits(self, memory: int) -> bool:
        """Whether there is room now, and will be when those before have theirs."""
        budget = self._rules.budget
        if budget is None:
            return True
        return self._used + memory <= budget and self._later(memory) <= budget

    def start(self, unit: UnitFacts) -> None:
        self._made.start.append(unit.key)
        self._used += unit.memory

    def reserve(self, unit: UnitFacts, units: Sequence[UnitFacts], now: float) -> None:
        """Promise the unit its memory, and make room for it where that is needed and possible."""
        assert self._rules.budget is not None and unit.wanted_since is not None
        needed = self._later(unit.memory) - self._rules.budget
        room = make_room(needed, unit.wanted_since, units, now, self._rules, self._leaving)
        self._apply(room)
        self._promised += unit.memory
        self._leaving.update(room.awaited)

    def _apply(self, room: Room) -> None:
        self._made.look_by(room.look_at)
        self._made.stop += room.stop
        self._made.hold += room.hold
        self._leaving.update(room.stop, room.hold)

    def _later(self, memory: int) -> int:
        """What is in use once who is to leave has left, who was promised came, and this one."""
        leaving = sum(self._takes[key] for key in self._leaving)
        return self._used - leaving + self._promised + memory
