"""What is known of one model: what its manifest says and what its files say."""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app import jsontext
from app.catalog import quantization
from app.catalog.capabilities import capabilities, through
from app.catalog.file_facts import Facts
from app.catalog.file_names import is_projector, split_of
from app.catalog.manifest import Entry, FileEntry
from app.catalog.names import normal, tagged
from app.engine_facts import EngineFacts

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class ModelFacts:
    """One model of the registry; the same object for as long as nothing of it changes.

    ``file`` is its first file, ``parameters`` counts all its parts (0: not known), ``projector``
    is the file that sees or hears for it. Where ``engine`` is asked for, it is what the engine
    that runs the model says, None where that is not known.
    """

    entry: Entry
    file: Facts
    parameters: int = 0
    projector: Facts | None = None

    @cached_property
    def name(self) -> str:
        """The name as Ollama shows it, with a tag."""
        return tagged(self.entry.name)

    @cached_property
    def digest(self) -> str:
        """64 hex digits: the SHA-256 of the first file, where the manifest has it.

        Otherwise a hash of what is known of the model, so that it is the same after a restart,
        no other model's, and another one once the model can do something else. With a projector,
        or what a modelfile adds, it is a hash of both: clients remember by digest what a model can
        do, and take two of one digest for the same.
        """
        told = self.entry.first.sha256.lower()
        beside = projector_of(self.entry) if self.projector else None
        if _SHA256.fullmatch(told) and not beside and not self.entry.modelfile:
            return told
        known: list[Any] = [told] if _SHA256.fullmatch(told) else [
            normal(self.entry.name), self.entry.size, self.parameters, self.quantization(),
            sorted(self.capabilities()), self.context_length()]
        if beside and self.projector:
            known += [beside.sha256.lower(), beside.size, self.projector.values]
        if self.entry.modelfile:
            known.append(self.entry.modelfile)
        return hashlib.sha256(jsontext.encode(known)).hexdigest()

    @cached_property
    def families(self) -> list[str]:
        """The architecture, and ``clip`` where there is a projector: clients look for it."""
        return [self.file.architecture, *(["clip"] if self.projector else [])]

    @cached_property
    def parameter_size(self) -> str:
        """Such as 8.0B, counted; else what the file says of itself; else ""."""
        counted = self.parameters or self.file.number("general.parameter_count") or 0
        return quantization.parameter_size(counted) or self.file.size_label

    def quantization(self, engine: EngineFacts | None = None) -> str:
        """Such as Q4_K_M: what the manifest says, else the file, else the engine, else ""."""
        if self.entry.quant:
            return self.entry.quant
        file_type = self.file.number("general.file_type")
        if file_type is not None:
            return quantization.of_file_type(file_type)
        return quantization.of_engine(engine.ftype) if engine else ""

    def capabilities(self, engine: EngineFacts | None = None) -> tuple[str, ...]:
        """What it can do, in Ollama's words; at least one."""
        found = capabilities(self.file, self.projector, engine)
        template = self.entry.modelfile.get("template")
        return through(template, found) if isinstance(template, str) and template else found

    def context_length(self, engine: EngineFacts | None = None) -> int:
        """Tokens that one call may use: as trained, or what the engine gives a call if less.

        0 where neither is known.
        """
        limits = (self.file.context_length, engine.slot_context if engine else 0)
        return min((limit for limit in limits if limit), default=0)

    def template(self, engine: EngineFacts | None = None) -> str:
        """The chat template that is applied, a Jinja text; "" where none is known."""
        return engine.chat_template if engine and engine.chat_template else self.file.template


def parts_of(entry: Entry) -> list[FileEntry]:
    """The files that hold the weights: the first one, or all parts of a split model.

    Empty where a part is missing, because what the others say is not the whole.
    """
    first = entry.first
    split = split_of(first.path)
    if not split:
        return [first]
    wanted = split.all()
    parts = {file.path: file for file in entry.files if file.path in wanted}
    return list(parts.values()) if len(parts) == split.parts else []


def projector_of(entry: Entry) -> FileEntry | None:
    """The file that may be the model's projector, by its name."""
    named = [
        file for file in entry.files
        if file is not entry.first and is_projector(file.path)
    ]
    return min(named, key=lambda file: file.path, default=None)
