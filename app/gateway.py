"""The road of a call, from a model name to an engine's reply."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace

from app.call import Call, Passing, Reply
from app.catalog.names import normal
from app.catalog.registry import Registry
from app.engine_facts import EngineFacts
from app.engines.dispatch import dispatch
from app.engines.engine import Engine, takes_choices
from app.engines.fleet import Fleet
from app.engines.hangup import Departure, Hangups
from app.engines.loaded import LoadedModels
from app.engines.prober import Prober
from app.engines.runs import Runs
from app.engines.status import Status
from app.engines.supervisor import Supervisor
from app.engines.unit import Unit
from app.errors import GatewayError, Kind

_LOADED = "loaded"  # default-model: the one used last
_TRANSFERS = 4  # of the threads beside those for calls
_LOOK = 0.05  # s between two looks at whether the last call of a model has ended


@dataclass(frozen=True)
class Names:
    """What the configuration says of model names."""

    aliases: dict[str, str]
    default: str | None


class Places:
    """The right to keep a thread waiting, for an engine or for a slow client's body."""

    def __init__(self, count: int) -> None:
        self._free = threading.BoundedSemaphore(count)

    def try_take(self) -> bool:
        """Take a place, if one is free; never blocks."""
        return self._free.acquire(blocking=False)

    def take(self) -> None:
        """Take a place; never blocks, raises GatewayError where none is free."""
        if not self.try_take():
            raise GatewayError(Kind.BUSY, "the gateway is answering as many calls as it can")

    def give_back(self) -> None:
        """Give a place back that was taken."""
        self._free.release()


@dataclass(frozen=True)
class Engines:
    """The engines and what is known of them."""

    fleet: Fleet
    supervisor: Supervisor
    used: LoadedModels
    status: Status
    prober: Prober


class Gateway:
    """The one door from HTTP to engines. Safe to use from many threads."""

    def __init__(self, engines: Engines, names: Names, registry: Registry, places: int) -> None:
        """At most ``places`` calls are meant to run at a time; callers take one for each."""
        self._fleet = engines.fleet
        self._supervisor = engines.supervisor
        self._used = engines.used
        self._keep_alive = engines.used.keep_alive
        self._prober = engines.prober
        self.status = engines.status
        self._literal = engines.fleet.literal_names
        self._aliases = {normal(name): target for name, target in names.aliases.items()}
        self._default = names.default
        self._registry = registry
        self.places = Places(places)
        self.transfers = Places(_TRANSFERS)
        self._hangups = Hangups()
        self._runs = Runs()

    def start(self) -> None:
        """Start the engines that are to be there from the beginning, and probe all from now on."""
        self._fleet.start()
        self._prober.start()

    def close(self) -> None:
        """End every managed engine, and the calls that wait for one; blocks until all are gone."""
        self._prober.close()
        self._supervisor.close()

    def call(self, call: Call) -> Reply:
        """Send the call to an engine that serves its model and return the answer.

        Blocks until a managed engine is started, a slot is free and the engine answers. Raises
        GatewayError: the model is unknown, or every engine that serves it failed.
        Whoever gets the reply closes it; what the call holds comes back then, exactly once.
        """
        model = self.resolve(call.model)
        engines = self._engines(model, call)
        with ExitStack() as held:
            held.enter_context(self._runs.of(model))
            departure = held.enter_context(self._hangups.watch(call.client))
            reply = dispatch(engines, call.for_model(model), departure)
            held.callback(reply.close)
            if reply.successful:
                self._used.touch(model)
                held.callback(self._used.touch, model)  # what was loaded is so until the end
            return replace(reply, close=held.pop_all().close)

    def _engines(self, model: str, call: Call) -> list[Engine]:
        """The engines that can serve the call; raises GatewayError where there are none."""
        serving = self._fleet.engines(model)
        if not serving:
            raise GatewayError.unknown_model(call.model or model)
        able = [engine for engine in serving if takes_choices(engine, call)]
        if not able:
            most = max(engine.max_choices or 1 for engine in serving)
            text = "'n' must be 1" if most == 1 else f"'n' must be from 1 to {most}"
            raise GatewayError(Kind.INVALID_FIELD, f"{text} for this model", param="n")
        return able

    def resolve(self, name: str | None) -> str:
        """The registry's spelling of a name: aliases, case and a missing tag are settled here.

        Without a name it is the default model; raises GatewayError where there is none.
        """
        asked = name or self._default_model()
        target = self.unaliased(asked)
        entry = self._registry.find(target)
        return entry.name if entry else self._fleet.configured_name(target)

    def unaliased(self, name: str) -> str:
        """The name an alias stands for; any other name as it is."""
        return self._aliases.get(normal(name), name)

    def knows(self, name: str) -> bool:
        """Whether a name stands in the registry or, letter by letter, in the configuration."""
        target = self.unaliased(name)
        return target in self._literal or self._registry.find(target) is not None

    def served(self, name: str) -> str:
        """As ``resolve``; raises GatewayError where no engine serves the model."""
        model = self.resolve(name)
        if not self._fleet.serves(model):
            raise GatewayError.unknown_model(name)
        return model

    def prepare(self, call: Call) -> None:
        """Return once an engine of the call's model is loaded and answers.

        Blocks and raises as ``call`` does, but takes no slot.
        """
        question = replace(call, target="/health", method="GET", passing=Passing.STATUSES)
        self.call(question).close()

    def watch(self, client: socket.socket | None) -> AbstractContextManager[Departure]:
        """A Departure that happens if the client leaves before the context ends."""
        return self._hangups.watch(client)

    @contextmanager
    def retired(self, model: str, client: socket.socket | None) -> Iterator[None]:
        """Within it no call of the model runs or begins, and no managed engine of it has a process.

        Blocks until its calls have ended, which are served as if nothing was, and its engines after
        them; new ones do not find it meanwhile. Raises GatewayError where the client leaves.
        """
        with self._runs.none_of(model), self._hangups.watch(client) as departure:
            while not (self._runs.over(model) and self._without_process(model)):
                if departure.gone:
                    raise GatewayError(Kind.CLIENT_GONE, "the client has left")
                time.sleep(_LOOK)
            self._used.touch(model, 0)
            yield

    def _without_process(self, model: str) -> bool:
        units = [unit for unit in self._fleet.engines(model) if isinstance(unit, Unit)]
        return all([self._supervisor.end(unit) for unit in units])

    def is_loaded(self, model: str) -> bool:
        """Whether an engine serves the model without having to be started first."""
        return any(engine.loaded for engine in self._fleet.engines(model))

    def engine_facts(self, model: str, ask: bool = True) -> EngineFacts | None:
        """What the engine says that serves a model of the registry; None where that is not known.

        Blocks for a third of a second at most, without ``ask`` not at all. Loads no model.
        """
        for engine in self._fleet.engines(model):
            props = engine.props
            found = props.of(model) if ask and engine.loaded else props.known(model)
            if found is not None:
                if found.slots and engine.learns_slots:
                    engine.admission.slots = found.slots
                return found
        return None

    def memory(self) -> tuple[int | None, int]:
        """Bytes that managed engines may take together (None: no bound), and that they take."""
        return self._supervisor.budget, self._supervisor.memory_used()

    def keep(self, model: str, seconds: float | None) -> None:
        """Let the model stay loaded for so long after its last call, None: for the usual time.

        0 is until its running calls have ended, inf for ever.
        """
        keep = self._keep_alive if seconds is None else seconds
        self._used.touch(model, keep)
        for engine in self._fleet.engines(model):
            if isinstance(engine, Unit):
                self._supervisor.keep(engine, keep)

    def _default_model(self) -> str:
        found = self.status.latest() if self._default == _LOADED else self._default
        if found:
            return found
        if self._default == _LOADED:
            raise GatewayError(Kind.NO_MODEL_LOADED, "no model is currently loaded")
        raise GatewayError(Kind.INVALID_FIELD, "'model' must not be blank", param="model")
