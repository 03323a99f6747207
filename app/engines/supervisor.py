"""The owner of all managed engines: looks at what is wanted, plans, and has it done."""

import logging
import threading
import time
from collections.abc import Callable

from app.engines.admission import Admission, Gate, QueueRules
from app.engines.lifecycle import Lifecycle
from app.engines.plan import Plan, plan
from app.engines.unit import Command, Unit
from app.engines.unit_facts import Rules, State, UnitFacts
from app.errors import GatewayError, Kind

log = logging.getLogger(__name__)

_LONGEST_LOOK = 3600.0  # s between two looks
_AFTER_A_FAULT = 1.0
_MIB = 1024 * 1024


class Supervisor:
    """Applies the plan, in one thread, whenever something happens. Safe to use from many threads.

    Starts no thread before the first call for a managed engine, or ``start``.
    """

    def __init__(
        self, rules: Rules, queue: QueueRules, keep_alive: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Engines are stopped after ``keep_alive`` seconds of idleness unless told otherwise."""
        self._rules = rules
        self._queue = queue
        self._keep_alive = keep_alive
        self._clock = clock
        self._lock = threading.Lock()
        self._units: dict[str, Unit] = {}
        self._lifecycle = Lifecycle(self._notice, clock)
        self._news = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def budget(self) -> int | None:
        """Bytes that all engines may take together, None without a bound."""
        return self._rules.budget

    def unit(self, model: str, command: Command) -> Unit:
        """The unit of a command with a model, made at first sight."""
        found = self._units.get(command.address)
        if found is None:
            with self._lock:
                found = self._units.get(command.address) or self._made(model, command)
        return found

    def known(self, address: str) -> Unit | None:
        """The unit of that address, if there is one yet."""
        return self._units.get(address)

    def units(self) -> list[Unit]:
        """All units there are."""
        with self._lock:
            return list(self._units.values())

    def start(self, unit: Unit) -> None:
        """Have the unit started as soon as it fits, though nobody calls."""
        unit.life.wanted = True
        self._notice()

    def keep(self, unit: Unit, seconds: float) -> None:
        """Let the unit stay for so long after its last call; 0: until its calls have ended."""
        if unit.keep != seconds:
            unit.keep = seconds
            self._notice()

    def end(self, unit: Unit) -> bool:
        """Have the unit end now, pinned or not, unless a call needs it; whether it has no process.

        Never blocks: whoever wants to see the end asks again.
        """
        unit.life.wanted = False
        if unit.life.state in (State.STOPPED, State.FAILED):
            return True
        self._lifecycle.stop(unit)
        return False

    def memory_used(self) -> int:
        """Bytes that the engines which have a process take, as estimated."""
        return sum(facts.memory for facts in self._facts() if facts.has_process)

    def close(self) -> None:
        """End all engines and the calls that wait for them; blocks until they are gone."""
        self._closed = True
        self._news.set()
        gone = GatewayError(Kind.ENGINE_NOT_READY, "the gateway is stopping", wait=5)
        units = self.units()
        for unit in units:
            unit.admission.move(Gate.SHUT)
            unit.admission.fail(gone)
        self._lifecycle.close(units)

    def _made(self, model: str, command: Command) -> Unit:
        admission = Admission(self._queue, command.slots, Gate.SHUT, self._notice, self._clock)
        unit = Unit(model, command, admission, self._keep_alive, self._lifecycle,
                    self._clock)
        self._units[command.address] = unit
        return unit

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
        self._watch()
        facts = self._facts()
        made = plan(facts, self._clock(), self._rules)
        for key in made.refuse:
            self._refuse(self._units[key], facts)
        for key in made.stop:
            if not self._lifecycle.stop(self._units[key]):
                self._news.set()  # a call has come meanwhile: think again
        self._hold(made)
        for key in made.start:
            self._lifecycle.start(self._units[key])
        return made.look_at

    def _facts(self) -> list[UnitFacts]:
        return [unit.facts() for unit in self.units()]

    def _watch(self) -> None:
        """Before the facts are taken: hear of engines that fall idle while memory is wanted."""
        units = self.units()
        wanted = any(unit.wanted for unit in units)
        for unit in units:
            unit.admission.watched = wanted or unit.keep == 0

    def _hold(self, made: Plan) -> None:
        for unit in self.units():
            if unit.life.state is State.READY and unit.alive:
                unit.admission.move(Gate.HELD if unit.address in made.hold else Gate.OPEN)

    def _refuse(self, unit: Unit, facts: list[UnitFacts]) -> None:
        """Answer the calls for a model that cannot fit, with the numbers."""
        pinned = sum(f.memory for f in facts if f.pinned and f.has_process)
        text = (f"the model '{unit.model}' needs about {unit.life.memory // _MIB} MiB of memory, "
                f"and loop.memory-budget is {(self._rules.budget or 0) // _MIB} MiB")
        if pinned:
            text += f", of which pinned engines take {pinned // _MIB} MiB"
        unit.admission.fail(GatewayError(Kind.ENGINE_NOT_READY, text, wait=60))
