"""All engines of the configuration, attached and managed, and which of them serve a model."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from app.engines.command import EngineCommand, Surroundings
from app.engines.engine import Attached, Engine
from app.engines.orphans import end_orphans
from app.engines.router import Served, candidates, configured_name
from app.engines.supervisor import Supervisor
from app.engines.unit import Unit
from app.settings import EngineSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """One entry of ``loop.engines``: what it serves, and the engine, or how engines are started."""

    served: Served
    engine: Attached | None = None
    command: EngineSettings | None = None
    place: str = ""  # of a command: its place in the configuration


class Fleet:
    """The engines of the configuration, in its order. Safe to use from many threads."""

    def __init__(
        self, entries: Sequence[Entry], supervisor: Supervisor, around: Surroundings
    ) -> None:
        self._entries = list(entries)
        self._served = [entry.served for entry in entries]
        self._supervisor = supervisor
        self._registry = around.registry
        self._around = around

    @property
    def literal_names(self) -> set[str]:
        """Names that stand in the configuration letter by letter (and globs)."""
        return {name for served in self._served for name in served.patterns}

    def configured_name(self, name: str) -> str:
        """The spelling of the configuration for a name that the registry does not hold."""
        return configured_name(name, self._served)

    def engines(self, model: str) -> list[Engine]:
        """The engines that serve the model, in the order of the configuration; none is started."""
        return [self._engine(self._entries[index], model) for index in self._able(model)]

    def serves(self, model: str) -> bool:
        """Whether an engine serves the model, or can be started for it."""
        return bool(self._able(model))

    def attached(self) -> list[tuple[Served, Attached]]:
        """The engines that run by themselves, with the names they serve."""
        return [(e.served, e.engine) for e in self._entries if e.engine]

    def managed(self) -> list[Unit]:
        """The unit of each command with each model of the registry that it serves."""
        names = [entry.name for entry in self._registry.entries()]
        return [
            self._unit(entry, name)
            for entry in self._entries if entry.command
            for name in names if entry.served.matches(name)
        ]

    def started(self) -> list[Unit]:
        """The units that have a process or had one."""
        return [unit for unit in self._supervisor.units() if unit.life.starts]

    def start(self) -> None:
        """End what a gateway that was killed left of its engines, and have those started that are
        to be there from the beginning."""
        ended = end_orphans(self._around.home)
        if ended:
            log.warning("ended %d processes of engines whose gateway is gone", ended)
        for entry in self._entries:
            if entry.command and entry.command.preload:
                for model in self._registry.entries():
                    if entry.served.matches(model.name):
                        self._supervisor.start(self._unit(entry, model.name))

    def _able(self, model: str) -> list[int]:
        found = candidates(model, self._served)
        if any(self._entries[index].command for index in found) and not self._registry.find(model):
            return [index for index in found if self._entries[index].engine]
        return found

    def _engine(self, entry: Entry, model: str) -> Engine:
        return entry.engine or self._unit(entry, model)

    def _unit(self, entry: Entry, model: str) -> Unit:
        address = _address(entry, model)
        found = self._supervisor.known(address)
        if found is not None:
            return found
        assert entry.command is not None
        command = EngineCommand(address, model, entry.command, self._around)
        return self._supervisor.unit(model, command)


def _address(entry: Entry, model: str) -> str:
    return f"{entry.place} {model}"
