"""One managed engine: one command with one model, and where it is in its life."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from app.engines.admission import Admission
from app.engines.client import EngineClient
from app.engines.health import Health
from app.engines.loading import Loading
from app.engines.making import Command, Process
from app.engines.props import QUICK, PropsCache, asking, parse_props
from app.engines.resident import FRESH, Resident
from app.engines.unit_facts import State, UnitFacts
from app.errors import GatewayError, Kind

PATIENCE = 2.0  # s; a call waits for a pause after a failure that is no longer


@dataclass
class Life:
    """What changes while a managed engine lives; the supervisor's alone, under its lock."""

    state: State = State.STOPPED
    process: Process | None = None
    port: int = 0
    client: EngineClient | None = None
    asker: EngineClient | None = None
    ready_since: float = 0.0
    load_time: float = 0.0
    failures: int = 0
    not_before: float = 0.0
    error: str | None = None
    starts: int = 0
    loads: int = 0      # starts that ended with it ready
    restarts: int = 0   # starts after it had failed
    evictions: int = 0  # stops to make room for others
    memory: int = 0
    wanted: bool = False  # to be started though nobody calls
    doomed: str | None = None  # why it is being killed
    abandoned: bool = False  # whether its start is to come to nothing
    doubts: int = 0  # broken connections that are being looked into


class Hearing(Protocol):
    """Who acts when an engine is in trouble. Neither method blocks."""

    def trouble(self, unit: "Unit", client: EngineClient, why: str) -> None:
        """The process behind the client is dead, or might as well be."""

    def doubt(self, unit: "Unit", client: EngineClient) -> None:
        """The process behind the client may be about to end."""


class Unit:
    """A managed engine as calls see it. Safe to use from many threads."""

    managed = True
    learns_slots = False

    def __init__(
        self, model: str, command: Command, admission: Admission, keep_alive: Callable[[], float],
        hear: "Hearing", clock: Callable[[], float], key: str,
    ) -> None:
        """It stays for ``keep_alive()`` seconds without a call; ``hear`` hears what goes wrong.

        ``key`` tells it from all other units there are, and never changes.
        """
        self.model = model
        self.command = command
        self.key = key
        self.number = 1
        self.max_choices = command.max_choices
        self.admission = admission
        self.health = Health(command.strikes, clock)
        self.loading = Loading(self.ask, command.start_timeout)
        self.props = PropsCache(self.ask_soon, command.kind)
        self.kept: float | None = None  # s to stay without a call, None for the usual time
        self.released: float | None = None  # since when it is to end, pinned or not
        self.life = Life()
        self._resident = Resident(clock)
        self._keep_alive = keep_alive
        self._hear = hear
        self._clock = clock

    @property
    def address(self) -> str:
        """What it is called, here and in other gateways: its ``number`` is that of the present
        configuration, among the engines of the same program and model.
        """
        name = f"{self.command.name} {self.model}"
        return name if self.number == 1 else f"{name} #{self.number}"

    @property
    def client(self) -> EngineClient:
        """The way to the running engine."""
        client = self.life.client
        if client is None:
            raise GatewayError(Kind.ENGINE_UNAVAILABLE, f"the engine of '{self.model}' has ended")
        return client

    @property
    def loaded(self) -> bool:
        """Whether it is ready."""
        return self.life.state is State.READY

    @property
    def keep(self) -> float:
        """Seconds for which it stays without a call."""
        if self.admission.retired:
            return 0.0
        return self._keep_alive() if self.kept is None else self.kept

    @property
    def pinned(self) -> bool:
        """Whether it is not stopped for idleness nor for others."""
        return self.command.pinned and not self.admission.retired and self.released is None

    @property
    def in_use(self) -> bool:
        """Whether calls run or wait."""
        return self.admission.demand().unused_since is None

    @property
    def alive(self) -> bool:
        """Whether it has a process that has not ended by itself, as far as anyone knows."""
        process = self.life.process
        return process is not None and process.ended() is None and not self.life.doubts

    @property
    def ended(self) -> bool:
        """Whether it has no process."""
        return self.life.state in (State.STOPPED, State.FAILED)

    @property
    def wanted(self) -> bool:
        """Whether it has no process and somebody waits for it, or it is to be there anyway."""
        if self.life.state in (State.READY, State.STARTING) or self.admission.retired:
            return False
        waited_for = self.admission.demand().waiting or self.admission.owed_since is not None
        return self.life.wanted or bool(waited_for)

    def forget_keep(self) -> None:
        """It stays for as long as is usual, whatever was said."""
        self.kept = self.released = None

    def require(self) -> None:
        """Raise GatewayError within the pause after a failure, unless that is short."""
        wait = self.life.not_before - self._clock()
        if self.life.state is State.FAILED and wait > PATIENCE:
            raise self.failure(wait)

    def failure(self, wait: float) -> GatewayError:
        """Why the engine cannot be had now, and when it can be tried again (s)."""
        return GatewayError(Kind.ENGINE_NOT_READY, self.life.error or "it failed", wait=wait)

    def lost(self, client: EngineClient, why: str) -> None:
        """Its process is dead, or does not listen any more."""
        self._hear.trouble(self, client, why)

    def broke(self, client: EngineClient) -> None:
        """Its process may be about to end: calls wait until that is known."""
        self._hear.doubt(self, client)

    def silent(self, client: EngineClient, why: str, seconds: float) -> None:
        """A strike, if it sent nothing to any call; after too many the process is ended."""
        if self.health.silent(why, seconds):
            self._struck_out(client, why)

    def given_up(self, client: EngineClient) -> None:
        """As ``silent``, if it has been silent for long."""
        limits = client.limits
        if self.health.given_up(limits.no_byte, limits.read):
            self._struck_out(client, limits.no_byte)

    def learn_slots(self) -> None:
        """Let as many calls run at a time as the process says, or else as its command does.

        Blocks for seconds at most.
        """
        try:
            found = parse_props(*self.ask("/props"))
        except GatewayError:
            found = None
        self.admission.slots = found.slots if found and found.slots else self.command.slots

    def failed_probe(self, why: str) -> None:
        """A strike, by somebody who asked beside all calls."""
        client = self.life.client
        if client is not None and self.health.missed(why):
            self._struck_out(client, why)

    def answered(self) -> None:
        """It works: earlier failures are forgotten."""
        self.health.answered()
        if self.life.failures:
            self.life.failures = 0

    def resident(self, fresh: float = FRESH) -> int | None:
        """Resident bytes of its processes, None without any; looked up ``fresh`` s ago at most."""
        return self._resident.of(self.life.process, fresh)

    def facts(self, fresh: float = FRESH) -> UnitFacts:
        """The unit as the policy sees it, its memory as it was at most ``fresh`` seconds ago."""
        life, demand = self.life, self.admission.demand()
        owed = self.admission.owed_since if self.ended else None
        if self.ended and (demand.waiting or life.wanted or owed is not None):
            life.memory = self.command.memory()
        since = min((at for at in (demand.wanted_since, owed) if at is not None), default=None)
        return UnitFacts(
            self.key, life.state, life.memory, demand.held,
            demand.waiting or int(owed is not None), since, demand.unused_since, life.ready_since,
            life.load_time, self.keep, life.not_before, self.pinned,
            life.wanted and not self.admission.retired, self.resident(fresh) or 0,
        )

    def ask(self, target: str) -> tuple[int, bytes]:
        """Status and body of a GET of the process that runs or starts; raises GatewayError."""
        return asking(self._asker())(target)

    def ask_soon(self, target: str) -> tuple[int, bytes]:
        """As ``ask``; blocks for half a second at most."""
        return asking(self._asker(), QUICK)(target)

    def _struck_out(self, client: EngineClient, why: str) -> None:
        self._hear.trouble(self, client, f"{why}, {self.command.strikes} times in a row")

    def _asker(self) -> EngineClient:
        asker = self.life.asker
        if asker is None:
            raise GatewayError(Kind.ENGINE_UNAVAILABLE, "there is no engine to ask")
        return asker
