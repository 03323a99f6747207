"""What models and their files say, cached for as long as the files stay the same."""

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from app.catalog.file_facts import NOTHING, Facts, read
from app.catalog.manifest import Entry
from app.catalog.model_facts import ModelFacts, parts_of, projector_of
from app.catalog.signature import Signature, signature, unchanged

__all__ = ["Facts", "FactsCache", "ModelFacts"]

_REMEMBERED = 4096  # files, and models; the one read longest ago is forgotten first
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class _FileRead:
    """What a file said; ``settled``: it was old enough then for a change to show."""

    facts: Facts
    settled: bool


@dataclass(frozen=True)
class _ModelRead:
    """What was made of a model, and of what: each file's signature, None for a missing one."""

    model: ModelFacts
    files: tuple[tuple[str, Signature | None], ...]

    def still_holds(self, entry: Entry) -> bool:
        """Whether nothing has changed; costs a stat per file."""
        return self.model.entry is entry and all(
            unchanged(path, seen) for path, seen in self.files)


class FactsCache:
    """Facts of files and of models. Safe to use from many threads; what is new is read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: OrderedDict[Signature, _FileRead] = OrderedDict()
        self._models: OrderedDict[str, _ModelRead] = OrderedDict()

    def of(self, path: Path) -> Facts:
        """The facts of a file; none where it is missing or no whole GGUF file, logged once."""
        found = signature(path)
        if found is None:
            return NOTHING
        with self._lock:
            known = self._files.get(found)
        if known and known.settled:
            return known.facts
        settled = found.settled
        facts = read(path, quiet=known is not None)
        self._remember(self._files, found, _FileRead(facts, settled))
        return facts

    def of_model(self, entry: Entry) -> ModelFacts:
        """What is known of a model of the registry: the same object until something changes."""
        with self._lock:
            known = self._models.get(entry.name)
        if known and known.still_holds(entry):
            return known.model
        files = self._looked_at(entry)
        settled = all(seen is None or seen.settled for _, seen in files)
        model = self._read(entry)
        if settled:
            self._remember(self._models, entry.name, _ModelRead(model, files))
        return model

    def _looked_at(self, entry: Entry) -> tuple[tuple[str, Signature | None], ...]:
        named = [entry.first, *parts_of(entry), projector_of(entry)]
        paths = {os.fspath(entry.directory / file.path): None for file in named if file}
        return tuple((path, signature(path)) for path in paths)

    def _read(self, entry: Entry) -> ModelFacts:
        counted = [self.of(entry.directory / part.path).parameters for part in parts_of(entry)]
        beside = projector_of(entry)
        projector = self.of(entry.directory / beside.path) if beside else NOTHING
        return ModelFacts(
            entry=entry,
            file=self.of(entry.first_file),
            parameters=0 if None in counted else sum(count or 0 for count in counted),
            projector=projector if projector.architecture == "clip" else None,
        )

    def _remember(
        self, store: "OrderedDict[_Key, _Value]", key: _Key, value: _Value
    ) -> None:
        with self._lock:
            store[key] = value
            store.move_to_end(key)
            if len(store) > _REMEMBERED:
                store.popitem(last=False)
