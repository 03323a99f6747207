"""All that one GGUF file says of itself, and what the model is made of that it belongs to."""

import os
from dataclasses import dataclass
from pathlib import Path

from app.catalog import gguf, gguf_tensors
from app.catalog.facts import FactsCache
from app.catalog.file_names import split_of, stem_of
from app.catalog.gguf_source import GgufError, Source
from app.catalog.manifest import Entry, FileEntry
from app.catalog.model_facts import ModelFacts
from app.catalog.problems import BadFile, shown

_NEVER = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Inspection:
    """One file: its metadata with arrays, its tensors, its bytes and how many it should have.

    ``model`` is what all parts together make, where the file is one of a split model.
    """

    metadata: gguf.Metadata
    tensors: list[gguf_tensors.Tensor]
    size: int
    announced: int
    model: ModelFacts

    @property
    def missing(self) -> int:
        """How many bytes the file is too short by."""
        return max(self.announced - self.size, 0)


def inspect(path: Path) -> Inspection:
    """What the file says; raises BadFile where it is no readable GGUF file. A cut one is read."""
    try:
        with gguf.open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            source = Source(file, size)
            metadata = gguf.read_source(source, arrays=True)
            tensors = list(gguf_tensors.read(source, metadata.tensor_count))
    except GgufError as error:
        raise BadFile(f"'{shown(path)}' is no readable GGUF file: {error}") from error
    except OSError as error:
        raise BadFile(f"'{shown(path)}' cannot be read: {error.strerror or error}") from error
    alignment = metadata.values.get("general.alignment")
    announced = gguf_tensors.end_of(tensors, source.position, alignment)
    return Inspection(metadata, tensors, size, announced, FactsCache().of_model(_entry(path)))


def _entry(path: Path) -> Entry:
    """The model that the file is, or is a part of, as it would be in a registry."""
    split = split_of(path.name)
    beside = [path.with_name(name) for name in split.all()] if split else []
    files = [FileEntry(each.name, each.stat().st_size, "") for each in beside if each.is_file()]
    whole = files or [FileEntry(path.name, path.stat().st_size, "")]
    return Entry(stem_of(path.name), "", _NEVER, tuple(whole), path.absolute().parent)
