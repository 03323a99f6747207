"""What the blueprints may use: built once by the factory, kept on the app."""

from dataclasses import dataclass

from app.catalog.facts import FactsCache
from app.catalog.manifest import Entry
from app.catalog.registry import Registry
from app.errors import GatewayError
from app.gateway import Gateway


@dataclass(frozen=True)
class Services:
    """The gateway for calls, the registry and the facts of its files for lists."""

    gateway: Gateway
    registry: Registry
    facts: FactsCache

    def entry(self, name: str) -> Entry:
        """The model of the registry that a client means by ``name``; raises GatewayError."""
        found = self.registry.find(self.gateway.unaliased(name))
        if found is None:
            raise GatewayError.unknown_model(name)
        return found
