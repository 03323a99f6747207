"""The owner of all managed engines: looks at what is wanted, plans, and has it done."""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Collection

from app.engines.admission import Admission, Gate
from app.engines.lifecycle import Lifecycle
from app.engines.plan import Plan, plan
from app.engines.making import Command, UnitKey
from app.engines.policy import PolicyInForce
from app.engines.steady import steadily
from app.engines.unit import Unit
from app.engines.unit_facts import State, UnitFacts
from app.errors import GatewayError, Kind
from app.places import stopping

log = logging.getLogger(__name__)

_LONGEST_LOOK = 3600.0  # s between two looks
_AFTER_A_FAULT = 1.0
_GROWTH = 2.0  # s between two looks at what engines take, as they grow without a word
_MIB = 1024 * 1024


class Supervisor:
    """Applies the plan, in one thread, whenever something happens. Safe to use from many threads.

    Starts no thread before the first call for a managed engine, or ``start``.
    """

    def __init__(
        self, policy: PolicyInForce, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Engines are stopped after the policy's time of idleness unless told otherwise."""
        self._policy = policy
        self._clock = clock
        self._lock = threading.Lock()
        self._units: dict[UnitKey, Unit] = {}
        self._lifecycle = Lifecycle(self._notice, clock)
        self._count = itertools.count(1)
        self._news = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def budget(self) -> int | None:
        """Bytes that all engines may take together, None without a bound."""
        return self._policy.budget

    def unit(self, key: UnitKey, command: Command, number: int = 1) -> Unit:
        """The unit of that key, made of the command and given its number at first sight."""
        found = self._units.get(key)
        if found is None:
            with self._lock:
                found = self._units.get(key) or self._made(key, command, number)
        return found

    def known(self, key: UnitKey) -> Unit | None:
        """The unit of that key, if there is one yet."""
        return self._units.get(key)

    def units(self) -> list[Unit]:
        """All units there are."""
        with self._lock:
            return list(self._units.values())

    def start(self, unit: Unit) -> None:
        """Have the unit started as soon as it fits, though nobody calls."""
        unit.life.wanted = True
        self._notice()

    def keep(self, unit: Unit, seconds: float | None, began: float) -> None:
        """Let the unit stay for so long after its last call, None: for the usual time.

        0 is until its calls have ended. A request that ``began`` before the unit was released has
        no say.
        """
        if unit.released is not None and began < unit.released:
            return
        changed = unit.kept != seconds or unit.released is not None
        unit.kept, unit.released = seconds, None
        if changed:
            self._notice()

    def release(self, unit: Unit) -> None:
        """Let the unit end as soon as no call needs it, pinned or not; the next call starts it."""
        unit.life.wanted = False
        unit.kept, unit.released = 0.0, self._clock()
        self._notice()

    def claim(self, wanted: Callable[[UnitKey], bool]) -> None:
        """Let those of these units serve on that were to end and have not yet."""
        with self._lock:
            for key, unit in self._units.items():
                if unit.admission.retired and wanted(key):
                    unit.admission.resume()

    def retain(self, wanted: Callable[[UnitKey], bool]) -> None:
        """Let all other units take no more calls, and end once theirs have ended."""
        with self._lock:
            leaving = [unit for key, unit in self._units.items() if not wanted(key)]
        for unit in leaving:
            unit.admission.retire()
            self._lifecycle.abandon(unit)
        self._notice()

    def renumber(self, number_of: Callable[[UnitKey], int | None]) -> None:
        """Give each unit its number of the configuration that counts now, None: it has none.

        Those without one keep theirs, or get another one where that is needed.
        """
        with self._lock:
            for key, unit in self._units.items():
                number = number_of(key)
                if number is not None:
                    self._place(unit, number)

    def leaving(self) -> list[Unit]:
        """The units that take no more calls and are still there."""
        return [unit for unit in self.units() if unit.admission.retired]

    def end(self, unit: Unit) -> bool:
        """Have the unit end now, pinned or not, unless a call needs it; whether it has no process.

        Never blocks: whoever wants to see the end asks again.
        """
        unit.life.wanted = False
        if unit.ended:
            return True
        self._lifecycle.stop(unit, evicted=False)
        return False

    def memory_used(self) -> int:
        """Bytes that the engines which have a process take now: of each the larger of what was
        estimated and what is resident."""
        return steadily(self.units, lambda: sum(
            unit.facts(fresh=0.0).takes for unit in self.units()))

    def close(self, hastily: bool) -> None:
        """End all engines and the calls that wait for them; blocks until they are gone."""
        self._closed = True
        self._news.set()
        units = self.units()
        for unit in units:
            unit.admission.move(Gate.SHUT)
            unit.admission.fail(stopping())
        self._lifecycle.close(units, hastily)

    def _made(self, key: UnitKey, command: Command, number: int) -> Unit:
        admission = Admission(self._policy, command.slots, Gate.SHUT, self._notice, self._clock)
        unit = Unit(key.model, command, admission, self._policy.keep_alive, self._lifecycle,
                    self._clock, f"{command.name} {key.model} {next(self._count)}")
        self._place(unit, number)
        self._units[key] = unit
        return unit

    def _place(self, unit: Unit, number: int) -> None:
        """Give the unit the number; who else has it gets one that nobody has."""
        unit.number = number
        alike = [each for each in self._units.values() if each.model == unit.model
                 and each.command.name == unit.command.name and each is not unit]
        for other in alike:
            if other.number == number:
                taken = {number, *(each.number for each in alike)}
                other.number = next(free for free in itertools.count(1) if free not in taken)

    def _notice(self) -> None:
        """Something has happened: look again."""
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._closed:
                    self._thread = threading.Thread(
                        target=self._run, name="supervisor", daemon=True)
                    self._thread.start()
        self._news.set()

    def _run(self) -> None:
        while not self._closed:
            self._news.clear()
            try:
                look_at = self._look()
            except Exception:  # the outermost edge of this thread, without which nothing starts
                log.exception("the supervisor failed and goes on")
                look_at = self._clock() + _AFTER_A_FAULT
            left = _LONGEST_LOOK if look_at is None else look_at - self._clock()
            self._news.wait(min(max(left, 0.0), _LONGEST_LOOK))

    def _look(self) -> float | None:
        """Plan once and act; when to look again."""
        self._forget()
        units = {unit.key: unit for unit in self.units()}
        self._watch(units.values())
        facts, now = [unit.facts() for unit in units.values()], self._clock()
        made = plan(facts, now, self._policy.rules())
        expired = {each.key for each in facts if each.expired(now)}
        for key in made.refuse:
            self._refuse(units[key], facts)
        for key in made.stop:
            if not self._lifecycle.stop(units[key], evicted=key not in expired):
                self._news.set()  # a call has come meanwhile: think again
        self._hold(made)
        for unit in units.values():
            if unit.life.not_before <= now:
                unit.admission.end_pause()
        for key in made.start:
            self._lifecycle.start(units[key])
        if self.budget is not None and any(each.has_process for each in facts):
            made.look_by(now + _GROWTH)
        return made.look_at

    def _forget(self) -> None:
        """Units that take no more calls are no more once they have no process."""
        with self._lock:
            gone = [key for key, unit in self._units.items()
                    if unit.admission.retired and unit.ended]
            for key in gone:
                del self._units[key]

    def _watch(self, units: Collection[Unit]) -> None:
        """Before the facts are taken: hear of engines that fall idle while memory is wanted."""
        used = sum(unit.facts().takes for unit in units)
        wanted = any(unit.wanted for unit in units) or used > (self.budget or used)
        ahead = max((unit.admission.service.mean for unit in units if unit.loaded), default=0.0)
        for unit in units:
            unit.admission.watched = wanted or unit.keep == 0
            unit.admission.ahead = ahead

    def _hold(self, made: Plan) -> None:
        for unit in self.units():
            if unit.life.state is State.READY and unit.alive:
                unit.admission.move(Gate.HELD if unit.key in made.hold else Gate.OPEN)

    def _refuse(self, unit: Unit, facts: list[UnitFacts]) -> None:
        """Answer the calls for a model that cannot fit, with the numbers."""
        pinned = sum(each.takes for each in facts if each.pinned)
        text = (f"the model '{unit.model}' needs about {unit.life.memory // _MIB} MiB of memory, "
                f"and loop.memory-budget is {(self.budget or 0) // _MIB} MiB")
        if pinned:
            text += f", of which pinned engines take {pinned // _MIB} MiB"
        unit.admission.owed_since = None
        unit.admission.fail(GatewayError(Kind.ENGINE_NOT_READY, text, wait=60))
