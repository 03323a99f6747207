"""The road of a call, from a model name to an engine's reply."""

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime

from app.call import Call, Reply
from app.catalog.names import normal
from app.catalog.registry import Registry
from app.engine_facts import EngineFacts
from app.engines.client import EngineClient
from app.engines.hangup import Departure, Hangups
from app.engines.loaded import LoadedModels
from app.engines.props import PropsCache
from app.engines.router import Served, candidates, configured_name
from app.errors import GatewayError, Kind

_LOADED = "loaded"  # default-model: the one used last


@dataclass(frozen=True)
class Attached:
    """One engine that someone else runs: what it serves, the way to it, what it says of itself."""

    served: Served
    client: EngineClient
    props: PropsCache | None = None


@dataclass(frozen=True)
class Names:
    """What the configuration says of model names."""

    aliases: dict[str, str]
    default: str | None


class Places:
    """The right to keep a thread waiting, for an engine or for a slow client's body."""

    def __init__(self, count: int) -> None:
        self._free = threading.BoundedSemaphore(count)

    def take(self) -> None:
        """Take a place; never blocks, raises GatewayError where none is free."""
        if not self._free.acquire(blocking=False):
            raise GatewayError(Kind.BUSY, "the gateway is answering as many calls as it can")

    def give_back(self) -> None:
        """Give a place back that was taken."""
        self._free.release()


class Gateway:
    """The one door from HTTP to engines. Safe to use from many threads."""

    def __init__(
        self,
        engines: Sequence[Attached],
        names: Names,
        registry: Registry,
        loaded: LoadedModels,
        places: int,
    ) -> None:
        """At most ``places`` calls are meant to run at a time; callers take one for each."""
        self._engines = list(engines)
        self._served = [engine.served for engine in engines]
        self._literal = {name for served in self._served for name in served.patterns}
        self._aliases = {normal(name): target for name, target in names.aliases.items()}
        self._default = names.default
        self._registry = registry
        self._loaded = loaded
        self.places = Places(places)
        self._hangups = Hangups()

    def call(self, call: Call) -> Reply:
        """Send the call to an engine that serves its model and return the answer.

        Blocks as ``EngineClient.send`` does. Raises GatewayError: the model is unknown, or every
        engine that serves it failed.
        Whoever gets the reply closes it; what the call holds comes back then, exactly once.
        """
        model = self.resolve(call.model)
        found = candidates(model, self._served)
        if not found:
            raise GatewayError.unknown_model(call.model or model)
        with ExitStack() as held:
            departure = held.enter_context(self._hangups.watch(call.client))
            clients = [self._engines[i].client for i in found]
            reply = _first_listening(clients, call.for_model(model), departure)
            held.callback(reply.close)
            if reply.successful:
                self._loaded.touch(model)
                held.callback(self._loaded.touch, model)  # what was loaded is so until the end
            return replace(reply, close=held.pop_all().close)

    def resolve(self, name: str | None) -> str:
        """The registry's spelling of a name: aliases, case and a missing tag are settled here.

        Without a name it is the default model; raises GatewayError where there is none.
        """
        asked = name or self._default_model()
        target = self.unaliased(asked)
        entry = self._registry.find(target)
        return entry.name if entry else configured_name(target, self._served)

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
        if not candidates(model, self._served):
            raise GatewayError.unknown_model(name)
        return model

    def engine_facts(self, model: str, ask: bool = True) -> EngineFacts | None:
        """What the engine says that serves a model of the registry; None where that is not known.

        Blocks for a third of a second at most, without ``ask`` not at all. Loads no model.
        """
        for index in candidates(model, self._served):
            props = self._engines[index].props
            found = (props.of(model) if ask else props.known(model)) if props else None
            if found is not None:
                return found
        return None

    @property
    def keep_alive(self) -> float:
        """Seconds for which a model counts as loaded after its last use, unless told otherwise."""
        return self._loaded.keep_alive

    def keep(self, model: str, seconds: float) -> None:
        """Let the model count as loaded for so long from now; 0 is not at all, inf for ever."""
        self._loaded.touch(model, seconds)

    def loaded(self) -> dict[str, datetime | None]:
        """Models that count as loaded → until when; None for ever."""
        return self._loaded.active()

    def _default_model(self) -> str:
        found = self._loaded.latest() if self._default == _LOADED else self._default
        if found:
            return found
        if self._default == _LOADED:
            raise GatewayError(Kind.NO_MODEL_LOADED, "no model is currently loaded")
        raise GatewayError(Kind.INVALID_FIELD, "'model' must not be blank", param="model")


def _first_listening(clients: list[EngineClient], call: Call, departure: Departure) -> Reply:
    """The answer of the first engine that can be reached: one that refused has seen nothing."""
    for client in clients[:-1]:
        try:
            return client.send(call, departure)
        except GatewayError as error:
            if error.kind is not Kind.ENGINE_UNAVAILABLE:
                raise
    return clients[-1].send(call, departure)
