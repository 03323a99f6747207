"""The road of a call, from a model name to an engine's reply."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.call import Call, Reply
from app.catalog.names import normal
from app.catalog.registry import Registry
from app.engines.client import EngineClient
from app.engines.loaded import LoadedModels
from app.engines.router import Served, candidates, configured_name
from app.errors import GatewayError, Kind

_LOADED = "loaded"  # default-model: the one used last


@dataclass(frozen=True)
class Names:
    """What the configuration says of model names."""

    aliases: dict[str, str]
    default: str | None


class Gateway:
    """The one door from HTTP to engines. Safe to use from many threads."""

    def __init__(
        self,
        engines: Sequence[tuple[Served, EngineClient]],
        names: Names,
        registry: Registry,
        loaded: LoadedModels,
    ) -> None:
        self._served = [served for served, _ in engines]
        self._clients = [client for _, client in engines]
        self._literal = {name for served in self._served for name in served.patterns}
        self._aliases = {normal(name): target for name, target in names.aliases.items()}
        self._default = names.default
        self._registry = registry
        self._loaded = loaded

    def call(self, call: Call) -> Reply:
        """Send the call to an engine that serves its model and return the answer.

        Blocks as ``EngineClient.send`` does. Raises GatewayError: the model is unknown, or every
        engine that serves it failed.
        """
        model = self.resolve(call.model)
        found = candidates(model, self._served)
        if not found:
            raise GatewayError.unknown_model(call.model or model)
        reply = self._first_listening([self._clients[i] for i in found], call.for_model(model))
        if reply.successful:
            self._loaded.touch(model)
        return reply

    def resolve(self, name: str | None) -> str:
        """The registry's spelling of a name: aliases, case and a missing tag are settled here.

        Without a name it is the default model; raises GatewayError where there is none.
        """
        asked = name or self._default_model()
        target = self._aliases.get(normal(asked), asked)
        if target in self._literal:  # the usual case costs no look at the registry
            return target
        entry = self._registry.find(target)
        return entry.name if entry else configured_name(target, self._served)

    def loaded(self) -> dict[str, datetime]:
        """Models that count as loaded → until when."""
        return self._loaded.active()

    def _default_model(self) -> str:
        found = self._loaded.latest() if self._default == _LOADED else self._default
        if found:
            return found
        if self._default == _LOADED:
            raise GatewayError(Kind.NO_MODEL_LOADED, "no model is currently loaded")
        raise GatewayError(Kind.INVALID_FIELD, "'model' must not be blank", param="model")

    @staticmethod
    def _first_listening(clients: list[EngineClient], call: Call) -> Reply:
        """The answer of the first engine that can be reached: one that refused has seen nothing."""
        for client in clients[:-1]:
            try:
                return client.send(call)
            except GatewayError as error:
                if error.kind is not Kind.ENGINE_UNAVAILABLE:
                    raise
        return clients[-1].send(call)
