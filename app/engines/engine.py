"""One model server as a call sees it, whoever runs it."""

import threading
import time
from typing import Any, Protocol

from app.call import Call
from app.engine_facts import OPENAI
from app.engines.admission import Admission
from app.engines.client import EngineClient
from app.engines.failures import BrokenConnection, Unconnected
from app.engines.health import Health
from app.engines.loading import Loading
from app.engines.props import QUICK, PropsCache, asking, parse_props
from app.engines.router import Candidate
from app.errors import GatewayError, Kind
from app.settings import EngineSettings


_GIVING_BACK = 0.01  # s
_SLOTS_RETRY = 10.0  # s until an engine that did not say how many it has is asked again


class Engine(Protocol):
    """What a call needs of an engine. Safe to use from many threads."""

    managed: bool
    max_choices: int | None
    learns_slots: bool  # whether the engine itself is to say how many it has
    admission: Admission
    health: Health
    loading: Loading
    props: PropsCache

    @property
    def address(self) -> str:
        """Tells it from other engines, also in other gateways."""

    @property
    def client(self) -> EngineClient:
        """The way to it; raises GatewayError while there is none."""

    @property
    def loaded(self) -> bool:
        """Whether it can serve without being started first."""

    def ask(self, target: str, /) -> tuple[int, bytes]:
        """Status and body of a small GET; blocks for seconds, raises GatewayError."""

    def ask_soon(self, target: str, /) -> tuple[int, bytes]:
        """As ``ask``; blocks for half a second at most."""

    def require(self) -> None:
        """Raise GatewayError while it makes no sense to wait for it."""

    def lost(self, client: EngineClient, why: str) -> None:
        """It refused a connection through ``client``."""

    def broke(self, client: EngineClient) -> None:
        """A connection of ``client`` broke."""

    def silent(self, client: EngineClient, why: str, seconds: float) -> None:
        """It did not answer within so many seconds through ``client``."""

    def given_up(self, client: EngineClient) -> None:
        """The client of a call that waited for it through ``client`` has left."""

    def answered(self) -> None:
        """It gave a good answer."""


def candidate(engine: Engine) -> Candidate:
    """The engine as the choice sees it."""
    return Candidate(engine.address, engine.health.usable, engine.loaded,
                     engine.admission.has_free_slot, engine.admission.running)


def note(engine: Engine, client: EngineClient, error: GatewayError) -> None:
    """Let the engine's health know what went wrong, if it says something of it."""
    if isinstance(error, BrokenConnection):
        engine.broke(client)
    elif error.kind is Kind.ENGINE_UNAVAILABLE:
        engine.lost(client, error.message)
    elif error.kind is Kind.ENGINE_TIMEOUT:
        limits = client.limits
        seconds = limits.connect if isinstance(error, Unconnected) else limits.read
        engine.silent(client, error.message, seconds)
    elif error.kind is Kind.CLIENT_GONE:
        engine.given_up(client)


def excess(call: Call, most: int | None) -> str | None:
    """The field by which the call asks for other than 1 to ``most`` answers, if one does."""
    if most is None:
        return None
    return next((name for name, wanted in call.choices.items() if not _within(wanted, most)), None)


def _within(wanted: Any, most: int) -> bool:
    return (isinstance(wanted, (int, float)) and not isinstance(wanted, bool)
            and 1 <= wanted <= most)


class Attached:
    """An engine that someone else runs."""

    managed = False
    loaded = True

    def __init__(
        self, settings: EngineSettings, client: EngineClient, asker: EngineClient,
        admission: Admission,
    ) -> None:
        """``asker`` is for questions whose answer nobody waits for long."""
        self.address = settings.url
        self.client = client
        self._asker = asker
        self.ask = asking(asker)
        self.ask_soon = asking(asker, QUICK)
        self.props = PropsCache(self.ask_soon, settings.kind)
        self.admission = admission
        self.health = Health(settings.strikes)
        self.loading = Loading(self.ask, settings.start_timeout)
        self.max_choices = settings.max_choices
        self.learns_slots = settings.slots is None and settings.kind != OPENAI.kind
        self._slots_lock = threading.Lock()
        self._ask_slots_at = 0.0

    def retire(self) -> None:
        """Take no more calls; those that run go on, and no connection is kept."""
        self.admission.retire()
        self.client.close()
        self._asker.close()

    def require(self) -> None:
        """Learn how many slots there are, before a second call comes to run beside a first.

        Blocks for a third of a second at most. It is always worth a try.
        """
        if self.learns_slots and self.admission.slots is None and self._keeps_running():
            self._learn_slots()

    def _keeps_running(self) -> bool:
        """Whether a call runs, and is not just giving back its slot: its client may be here again
        before that is done."""
        now = time.monotonic()
        if not self.admission.running or now < self._ask_slots_at:
            return False
        until = now + _GIVING_BACK
        while self.admission.running and time.monotonic() < until:
            time.sleep(_GIVING_BACK / 10)
        return self.admission.running > 0

    def _learn_slots(self) -> None:
        with self._slots_lock:
            now = time.monotonic()
            if now < self._ask_slots_at:
                return
            self._ask_slots_at = now + _SLOTS_RETRY
        try:
            found = parse_props(*self.ask_soon("/props"))
        except GatewayError:
            return
        if found is OPENAI:
            self._ask_slots_at = float("inf")
        elif found and found.slots:
            self.admission.slots = found.slots

    def lost(self, client: EngineClient, why: str) -> None:
        """It is suspect from now on."""
        self.health.refused(why)

    def broke(self, client: EngineClient) -> None:
        """That alone says nothing of it."""

    def silent(self, client: EngineClient, why: str, seconds: float) -> None:
        """A strike, if it sent nothing to any call."""
        self.health.silent(why, seconds)

    def given_up(self, client: EngineClient) -> None:
        """A strike, if it has been silent for long."""
        self.health.given_up(client.limits.no_byte, client.limits.read)

    def answered(self) -> None:
        """It is healthy."""
        self.health.answered()
