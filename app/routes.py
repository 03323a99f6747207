"""What a configuration makes of names and engines, and what outlives it."""

from dataclasses import dataclass
from functools import cached_property

from app.catalog.names import normal
from app.catalog.registry import Registry
from app.engines.fleet import Fleet
from app.engines.loaded import LoadedModels
from app.engines.policy import Policy, PolicyInForce
from app.engines.prober import Prober
from app.engines.status import Status
from app.engines.supervisor import Supervisor


@dataclass(frozen=True)
class Names:
    """What the configuration says of model names."""

    aliases: dict[str, str]
    default: str | None

    @cached_property
    def _targets(self) -> dict[str, str]:
        return {normal(name): target for name, target in self.aliases.items()}

    def unaliased(self, name: str) -> str:
        """The name an alias stands for; any other name as it is."""
        return self._targets.get(normal(name), name)


@dataclass(frozen=True)
class Routes:
    """What one configuration makes of names and engines; replaced as a whole."""

    names: Names
    fleet: Fleet
    status: Status
    prober: Prober
    policy: Policy


@dataclass(frozen=True)
class Lasting:
    """What goes on when the configuration changes."""

    registry: Registry
    supervisor: Supervisor
    used: LoadedModels
    policy: PolicyInForce
