"""What the blueprints may use: built once by the factory, kept on the app."""

from dataclasses import dataclass

from app.api.security import principal
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

    def entries(self) -> list[Entry]:
        """Every model of the registry that the caller may use, sorted by name."""
        found = self.registry.entries()
        who = principal()
        return found if who.every_model else [each for each in found if who.allows(each.name)]

    def entry(self, name: str) -> Entry:
        """The model of the registry that a client means by ``name``; raises GatewayError.

        One that the caller may not use is as unknown as one that is not there.
        """
        found = self.registry.find(self.gateway.unaliased(name))
        if found is None or not principal().allows(found.name):
            raise GatewayError.unknown_model(name)
        return found
