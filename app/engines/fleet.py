"""All engines of the configuration, attached and managed, and which of them serve a model."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from app.engines.command import EngineCommand, Surroundings, program
from app.engines.engine import Attached, Engine
from app.engines.making import UnitKey
from app.engines.orphans import end_orphans
from app.engines.router import Served, candidates, configured_name
from app.engines.stock import Stock
from app.engines.supervisor import Supervisor
from app.engines.unit import Unit
from app.settings import EngineSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """One entry of ``loop.engines``: what it serves, and what its engines are made of.

    ``made_of`` is the same for engines that need not be told apart: which models the entry serves
    is no part of it, and where it stands neither.
    """

    served: Served
    made_of: EngineSettings
    preload: bool = False

    @property
    def managed(self) -> bool:
        """Whether the gateway starts and stops the engines."""
        return bool(self.made_of.command)


@dataclass(frozen=True)
class Owners:
    """Who has the engines, of this configuration and of those before it."""

    stock: Stock
    supervisor: Supervisor


class Fleet:
    """The engines of one configuration, in its order. Safe to use from many threads."""

    def __init__(self, entries: Sequence[Entry], owners: Owners, around: Surroundings) -> None:
        self._entries = list(entries)
        self._served = [entry.served for entry in entries]
        self._attached = [None if entry.managed else owners.stock.engine(entry.made_of)
                          for entry in entries]
        self._made_of = {entry.made_of for entry in entries}
        # Names that stand in the configuration letter by letter, and globs.
        self.literal_names = {name for served in self._served for name in served.patterns}
        self._owners = owners
        self._registry = around.registry
        self._around = around

    def configured_name(self, name: str) -> str:
        """The spelling of the configuration for a name that the registry does not hold."""
        return configured_name(name, self._served)

    def engines(self, model: str) -> list[Engine]:
        """The engines that serve the model, in the order of the configuration; none is started."""
        return [engine for _, engine in self._engines(model)]

    def serves(self, model: str) -> bool:
        """Whether an engine serves the model, or can be started for it."""
        return bool(self._able(model))

    def attached(self) -> list[tuple[Served, Attached]]:
        """The engines that run by themselves, with the names they serve."""
        pairs = zip(self._served, self._attached)
        return [(served, engine) for served, engine in pairs if engine]

    def managed(self) -> list[Unit]:
        """The unit of each command with each model of the registry that it serves, and those that
        still run a model which the registry has no more.
        """
        if not any(entry.managed for entry in self._entries):
            return []
        found = [(index, engine) for entry in self._registry.entries()
                 for index, engine in self._engines(entry.name)]
        units = [engine for _, engine in sorted(found, key=lambda pair: pair[0])
                 if isinstance(engine, Unit)]
        return units + [unit for unit in self._owners.supervisor.units()
                        if not (unit.ended or unit.admission.retired or unit in units)]

    def units(self) -> list[Unit]:
        """All units there are, of earlier configurations too."""
        return self._owners.supervisor.units()

    def started(self) -> list[Unit]:
        """The units that have a process or had one."""
        return [unit for unit in self._owners.supervisor.units() if unit.life.starts]

    def loading(self) -> list[str]:
        """The models of the registry whose attached engines say that they are loading."""
        served = [each for each, engine in self.attached() if engine.loading.since is not None]
        if not served:
            return []
        return [entry.name for entry in self._registry.entries()
                if any(each.matches(entry.name) for each in served)]

    def leaving(self) -> tuple[list[Attached], list[Unit]]:
        """Engines of earlier configurations that take no more calls and are still there."""
        return self._owners.stock.leaving(), self._owners.supervisor.leaving()

    def start(self) -> None:
        """End what a gateway that was killed left of its engines, and have those started that are
        to be there from the beginning."""
        ended = end_orphans(self._around.home)
        if ended:
            log.warning("ended %d processes of engines whose gateway is gone", ended)
        self._start(self._preloaded())

    def claim(self) -> None:
        """Let those of its engines serve on that an earlier configuration let go."""
        self._owners.stock.claim(self._made_of)
        self._owners.supervisor.claim(self._has)

    def succeed(self, before: "Fleet") -> None:
        """Let the engines that only ``before`` had take no more calls, and end once theirs have;
        and have those started that are to be there and were not to be before."""
        self._owners.stock.retain(self._made_of)
        self._owners.supervisor.retain(self._has)
        self._owners.supervisor.renumber(self._number)
        self._start(self._preloaded() - before._preloaded())

    def _start(self, keys: set[UnitKey]) -> None:
        for key in sorted(keys, key=lambda key: (key.model, key.number)):
            self._owners.supervisor.start(self._unit(key))

    def _preloaded(self) -> set[UnitKey]:
        """The units that are to be there from the beginning."""
        if not any(entry.preload for entry in self._entries):
            return set()
        return {key for model in self._registry.entries()
                for index, key in self._keys(model.name, self._able(model.name)).items()
                if self._entries[index].preload}

    def _has(self, key: UnitKey) -> bool:
        """Whether the configuration still has that unit."""
        return key in self._keys(key.model, candidates(key.model, self._served)).values()

    def _number(self, key: UnitKey) -> int | None:
        """Which of the units of its program and model it is, in the order of the configuration."""
        keys = self._keys(key.model, candidates(key.model, self._served)).values()
        alike = [each for each in keys if program(each.settings) == program(key.settings)]
        return alike.index(key) + 1 if key in alike else None

    def _able(self, model: str) -> list[int]:
        found = candidates(model, self._served)
        if any(self._entries[index].managed for index in found) and not self._registry.find(model):
            return [index for index in found if not self._entries[index].managed]
        return found

    def _engines(self, model: str) -> list[tuple[int, Engine]]:
        """The engines that serve the model, by the place of their entries."""
        able = self._able(model)
        keys = self._keys(model, able)
        return [(index, self._attached[index] or self._unit(keys[index])) for index in able]

    def _keys(self, model: str, able: Sequence[int]) -> dict[int, UnitKey]:
        """The keys of the units that serve the model, by the place of their entries."""
        seen: Counter[EngineSettings] = Counter()
        keys = {}
        for index in able:
            made_of = self._entries[index].made_of
            if made_of.command:
                keys[index] = UnitKey(made_of, seen[made_of], model)
                seen[made_of] += 1
        return keys

    def _unit(self, key: UnitKey) -> Unit:
        supervisor = self._owners.supervisor
        found = supervisor.known(key)
        if found is not None:
            return found
        command = EngineCommand(key.model, key.settings, self._around)
        return supervisor.unit(key, command, self._number(key) or 1)
