"""What the blueprints may use: built once by the factory, kept on the app."""

from dataclasses import dataclass

from app.catalog.facts import FactsCache
from app.catalog.registry import Registry
from app.gateway import Gateway


@dataclass(frozen=True)
class Services:
    """The gateway for calls, the registry and the facts of its files for lists."""

    gateway: Gateway
    registry: Registry
    facts: FactsCache
