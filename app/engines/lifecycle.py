"""The life of a managed engine's process: started, watched until its end, ended."""

import logging
import threading
import time
from collections.abc import Callable

from app.engines.admission import Gate
from app.engines.client import EngineClient
from app.engines.listening import Listener
from app.engines.making import CannotStart, Process
from app.engines.ports import free_port
from app.engines.starting import Stranger, wait_until_ready
from app.engines.unit import PATIENCE, Unit
from app.engines.unit_facts import State

log = logging.getLogger(__name__)

_PORTS = 2  # tries at finding one that stays free
_LONGEST_PAUSE = 60.0  # s between two starts of an engine that fails
_DYING = 0.02  # s; some close their connections themselves and end a moment later
_DOUBT = 0.5  # s; by then a process that has closed its connections is seen to have ended
_START_PAUSE, _CRASH_PAUSE = 1.0, 0.25  # s; the first ones


class Lifecycle:
    """Changes the state of units, each in a thread that waits for its process."""

    def __init__(
        self, notice: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``notice`` hears of every change; it must not block."""
        self._notice = notice
        self._clock = clock
        self._lock = threading.Lock()
        self._closed = False

    def start(self, unit: Unit) -> None:
        """Begin to start the unit, which has no process."""
        with self._lock:
            if self._closed:
                return
            life = unit.life
            life.restarts += life.state is State.FAILED
            life.state, life.wanted, life.abandoned = State.STARTING, False, False
            life.starts += 1
        if unit.kept == 0:  # that was until the end of calls which have ended with a process
            unit.forget_keep()
        unit.admission.move(Gate.LOADING)
        threading.Thread(target=self._live, args=(unit,), name="engine", daemon=True).start()

    def stop(self, unit: Unit, evicted: bool = False) -> bool:
        """Begin to end the unit, unless a call needs it; whether it ends.

        ``evicted``: another one is to have its memory.
        """
        if not unit.admission.shut_if_unused():
            return False
        process = self._ending(unit, None)
        if process:
            unit.life.evictions += evicted
            log.info("stopping the engine of %s", unit.model)
            threading.Thread(target=process.stop, name="stop", daemon=True).start()
        return True

    def trouble(self, unit: Unit, client: EngineClient, why: str) -> None:
        """Kill the process behind the client, as it is dead or might as well be."""
        if unit.life.client is not client:
            return  # that process is gone already
        unit.admission.move(Gate.SHUT)
        process = self._ending(unit, f"was ended: {why}")
        if process:
            log.warning("the engine of %s is ended: %s", unit.model, why)
            threading.Thread(target=process.kill, name="kill", daemon=True).start()

    def doubt(self, unit: Unit, client: EngineClient) -> None:
        """Let no call go there until it is known whether the process behind the client ends.

        The kernel closes the connections of a process that dies before anyone can see it dead.
        """
        with self._lock:
            process = unit.life.process
            if unit.life.client is not client or process is None:
                return
            unit.life.doubts += 1
            first = unit.life.doubts == 1
        unit.admission.move(Gate.SHUT)
        if first:
            threading.Thread(target=self._settle_doubts, args=(unit,), daemon=True).start()

    def abandon(self, unit: Unit) -> None:
        """Begin to end a start that nobody waits for any more."""
        with self._lock:
            unit.life.abandoned = unit.life.state is State.STARTING
            process = unit.life.process if unit.life.abandoned else None
        if process:
            threading.Thread(target=process.stop, name="stop", daemon=True).start()

    def _settle_doubts(self, unit: Unit) -> None:
        """Look until no more connections break meanwhile; those that do so together need one look.
        """
        settled = False
        while not settled:
            with self._lock:
                seen, process = unit.life.doubts, unit.life.process
            if process:
                _look_into(process, unit.life.port)
            with self._lock:
                settled = unit.life.doubts == seen
                if settled:
                    unit.life.doubts = 0
        self._notice()

    def close(self, units: list[Unit], hastily: bool) -> None:
        """End all processes for ever, ``hastily`` by SIGKILL; blocks until they are gone."""
        with self._lock:
            self._closed = True
            processes = [u.life.process for u in units if u.life.process]
        ends = [process.kill if hastily else process.stop for process in processes]
        stops = [threading.Thread(target=end, daemon=True) for end in ends]
        for thread in stops:
            thread.start()
        for thread in stops:
            thread.join()

    def _ending(self, unit: Unit, why: str | None) -> Process | None:
        """Note that the unit's process is being ended; None where it has none that runs."""
        with self._lock:
            life = unit.life
            if life.state is not State.READY or life.process is None or life.process.ended():
                return None
            life.state, life.doomed = State.STOPPING, why
            return life.process

    def _live(self, unit: Unit) -> None:
        try:
            process = self._brought_up(unit)
        except CannotStart as problem:
            self._fell(unit, f"did not start: {problem}", _START_PAUSE)
            return
        except Exception as error:  # the outermost edge of this thread; callers wait for its word
            log.exception("starting the engine of %s failed", unit.model)
            self._fell(unit, f"did not start: {error}", _START_PAUSE)
            return
        process.wait()
        self._ended(unit, process)

    def _brought_up(self, unit: Unit) -> Process:
        """The process of an engine that is ready. Raises CannotStart, and nothing is left then."""
        for _ in range(_PORTS - 1):
            try:
                return self._tried(unit, free_port())
            except Stranger as problem:
                log.warning("the engine of %s gets another port: %s", unit.model, problem)
        return self._tried(unit, free_port())

    def _tried(self, unit: Unit, port: int) -> Process:
        began = self._clock()
        process = unit.command.start(port)
        try:
            with self._lock:
                unit.life.process, unit.life.port = process, port
                unit.life.asker = unit.command.asker(port)
            self._require_wanted(unit)
            wait_until_ready(process, port, unit.ask, unit.command.start_timeout)
            self._ready(unit, began)
        except BaseException:
            process.kill()
            raise
        return process

    def _require_wanted(self, unit: Unit) -> None:
        if self._closed:
            raise CannotStart("the gateway is stopping")
        if unit.life.abandoned:
            raise CannotStart("the configuration has it no more")

    def _ready(self, unit: Unit, began: float) -> None:
        if unit.command.learns_slots:  # before anybody can let calls through
            unit.learn_slots()
        with self._lock:
            self._require_wanted(unit)
            life = unit.life
            life.client = unit.command.client(life.port)
            life.state, life.ready_since = State.READY, self._clock()
            life.loads += 1
            life.load_time = life.ready_since - began
            unit.health.reset()
        unit.props.expire()
        log.info("the engine of %s is ready after %.1f s", unit.model, unit.life.load_time)
        unit.admission.move(Gate.OPEN)
        self._notice()

    def _ended(self, unit: Unit, process: Process) -> None:
        """A process that was ready is gone: as it was told, or by itself."""
        life = unit.life
        if life.state is State.STOPPING and life.doomed is None:
            log.info("the engine of %s is stopped", unit.model)
            self._settle(unit, State.STOPPED)
            return
        line, ended = process.last_line(), process.ended() or "has ended"
        how = life.doomed if life.doomed and ended.endswith("SIGKILL") else ended
        self._fell(unit, how + (f"; its last line: {line}" if line else ""), _CRASH_PAUSE)

    def _fell(self, unit: Unit, what: str, first_pause: float) -> None:
        """The unit failed; calls that wait learn it unless the pause is one to wait for."""
        if self._closed or unit.life.abandoned:  # it was to end
            self._settle(unit, State.STOPPED)
            return
        life = unit.life
        crashed = life.state is not State.STARTING
        life.failures += 1
        pause = min(first_pause * 2 ** min(life.failures - 1, 16), _LONGEST_PAUSE)
        life.error = f"the engine of '{unit.model}' {what}"
        life.not_before = self._clock() + pause
        log.warning("%s", life.error)
        self._settle(unit, State.FAILED)
        if not crashed or pause > PATIENCE:
            unit.admission.fail(unit.failure(pause))

    def _settle(self, unit: Unit, state: State) -> None:
        """The unit has no process any more."""
        unit.admission.move(Gate.PAUSED if state is State.FAILED else Gate.SHUT)
        with self._lock:
            life = unit.life
            clients = (life.client, life.asker)
            life.process = life.client = life.asker = life.doomed = None
            life.state = state
        for client in clients:
            if client:
                client.close()
        unit.forget_keep()
        self._notice()


def _look_into(process: Process, port: int) -> None:
    """Return once it is known whether the process, a connection of which broke, has ended or lives.

    One that the kernel is clearing up holds no socket any more, also before it is seen to be dead.
    """
    if process.wait(_DYING) or process.listener(port) is Listener.OURS:
        return
    process.wait(_DOUBT)
