"""What starts an engine for one model: a command of the configuration with its values filled in."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.catalog.facts import FactsCache
from app.catalog.manifest import Entry
from app.catalog.model_facts import projector_of
from app.catalog.registry import Registry
from app.catalog.signature import Signature, signature
from app.engine_facts import LLAMA_SERVER
from app.engines.client import EngineClient
from app.engines.context import memory_of
from app.engines.failures import Limits, limits_of
from app.engines.lifeline import ROOT
from app.engines.logfile import FOLDER
from app.engines.making import CannotStart
from app.engines.orphans import marks
from app.engines.process import EngineProcess
from app.engines.props import LIMITS
from app.settings import BUILTIN, EngineSettings

DEFAULT_SLOTS = 4
_SLOTS = "{slots}"
_PLACEHOLDER = re.compile(r"\{(file|port|model|slots|projector)\}")
_BUILTIN = (sys.executable, "-m", "app.engines.builtin", "--host", "127.0.0.1",
            "--model", "{file}", "--alias", "{model}", "--port", "{port}", "--parallel", "{slots}")
_PROJECTOR = ("--mmproj", "{projector}")


@dataclass(frozen=True)
class Surroundings:
    """What all commands have in common; at most ``connections`` calls run at a time."""

    registry: Registry
    facts: FactsCache
    home: Path
    connections: int


class EngineCommand:
    """The command of one ``loop.engines`` entry, for one model of the registry."""

    def __init__(self, model: str, settings: EngineSettings, around: Surroundings) -> None:
        """``settings`` are whole: no limit is left to those of ``loop``."""
        self.name = program(settings)
        self.start_timeout = settings.start_timeout
        self.strikes = settings.strikes
        self._slots = settings.slots or DEFAULT_SLOTS  # what {slots} stands for
        self.max_choices = settings.max_choices
        self.pinned = settings.pinned
        builtin = settings.command == BUILTIN
        self.learns_slots = settings.slots is None and not builtin
        told = not self.learns_slots or any(_SLOTS in part for part in settings.command)
        self.slots = self._slots if told else None
        self.kind = LLAMA_SERVER if builtin else settings.kind
        self._model = model
        self._settings = settings
        self._around = around
        self._limits = limits_of(settings)
        self._started: Entry | None = None
        self._files: list[Signature | None] = []

    def outdated(self) -> bool:
        """Whether the model has been removed or replaced, or a file of it, since the last start.

        A file that is not there is no other one: the engine may be all that is left of it.
        """
        entry = self._around.registry.find(self._model)
        if entry is None or entry != self._started:
            return True
        return any(now and now != then for now, then in zip(_signatures(entry), self._files))

    def memory(self) -> int:
        """Bytes that the engine will take, estimated; 0 for a model that is gone."""
        entry = self._around.registry.find(self._model)
        if entry is None:
            return 0
        return memory_of(self._settings.command, self._around.facts.of_model(entry), self._slots)

    def start(self, port: int) -> EngineProcess:
        """The process, just started. Raises CannotStart."""
        entry = self._around.registry.find(self._model)
        if entry is None:
            raise CannotStart("the model is no longer in the registry")
        self._started, self._files = entry, _signatures(entry)
        log = self._around.home / FOLDER / f"{entry.directory.name}.log"
        line = filled(self._template(entry), entry, port, self._slots)
        directory = ROOT if self._settings.command == BUILTIN else None  # where its module is found
        try:
            return EngineProcess(line, log, self._settings.stop_timeout, marks(self._around.home),
                                 directory)
        except OSError as error:
            raise CannotStart(f"its process cannot be made ({error.strerror})") from error

    def client(self, port: int) -> EngineClient:
        """The way to the engine at that port."""
        return self._client(port, self._limits, self._around.connections)

    def asker(self, port: int) -> EngineClient:
        """As ``client``, for questions whose answer nobody waits for long."""
        return self._client(port, LIMITS, 4)

    def _client(self, port: int, limits: Limits, connections: int) -> EngineClient:
        settings = self._settings
        return EngineClient(f"http://127.0.0.1:{port}", settings.api_key, limits, connections)

    def _template(self, entry: Entry) -> Sequence[str]:
        if self._settings.command != BUILTIN:
            return self._settings.command
        return (*_BUILTIN, *_PROJECTOR) if projector_of(entry) else _BUILTIN


def program(settings: EngineSettings) -> str:
    """The name of the program that the command starts."""
    return Path(settings.command[0]).name


def _signatures(entry: Entry) -> list[Signature | None]:
    """Which files the model has now."""
    return [signature(entry.directory / file.path) for file in entry.files]


def filled(template: Sequence[str], entry: Entry, port: int, slots: int) -> list[str]:
    """The command line: every placeholder with its value, other braces as they are."""
    projector = projector_of(entry)
    values = {
        "file": str(entry.first_file), "port": str(port), "model": entry.name,
        "slots": str(slots),
        "projector": str(entry.directory / projector.path) if projector else "",
    }
    fill: Callable[[re.Match[str]], str] = lambda match: values[match[1]]  # noqa: E731
    return [_PLACEHOLDER.sub(fill, part) for part in template]
