"""What one GGUF file says about itself."""

import logging
import math
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from app.catalog import gguf, gguf_tensors
from app.catalog.gguf_source import Source

log = logging.getLogger(__name__)

TEMPLATE = "tokenizer.chat_template"
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Facts:
    """The metadata of one GGUF file: scalars and texts by key, in file order, fit for JSON.

    ``parameters`` is the number of elements of all its tensors, None where that cannot be read.
    ``arrays`` has the length of each array, and the elements of those of a few numbers.
    """

    values: dict[str, Any]
    parameters: int | None = None
    arrays: dict[str, gguf.Array] = field(default_factory=dict)

    @cached_property
    def architecture(self) -> str:
        """``general.architecture``, or "unknown"."""
        return self.text("general.architecture") or _UNKNOWN

    @property
    def size_label(self) -> str:
        """``general.size_label``, such as 7B, or "" where the file has none."""
        return self.text("general.size_label")

    @property
    def context_length(self) -> int:
        """Tokens the model was trained to read at once; 0 where the file does not say."""
        return max(self.number(f"{self.architecture}.context_length") or 0, 0)

    @property
    def embedding_length(self) -> int:
        """How long the vector of one token is; 0 where the file does not say."""
        return max(self.number(f"{self.architecture}.embedding_length") or 0, 0)

    @property
    def template(self) -> str:
        """The chat template, a Jinja text; "" where the file has none."""
        return self.text(TEMPLATE)

    @cached_property
    def templates(self) -> str:
        """All chat templates in one text: a file may have another one for tools."""
        return "\n".join(self.text(key) for key in self.values if key.startswith(TEMPLATE))

    def text(self, key: str) -> str:
        """The text of a key; "" where there is none."""
        found = self.values.get(key)
        return found if isinstance(found, str) else ""

    def number(self, key: str) -> int | None:
        """The whole number of a key; None where there is none."""
        found = self.values.get(key)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def own(self, key: str) -> Any:
        """The value of a key that the architecture is put before; None where there is none."""
        return self.values.get(f"{self.architecture}.{key}")


NOTHING = Facts({})


def read(path: Path, quiet: bool = False) -> Facts:
    """The facts of a file; none where it is no readable GGUF file, which is logged.

    With ``quiet`` nothing is logged, because it has been.
    """
    tell = log.debug if quiet else log.warning
    try:
        with gguf.open_file(path) as file:
            source = Source(file, os.fstat(file.fileno()).st_size)
            metadata = gguf.read_source(source)
            values = {key: finite(value) for key, value in metadata.values.items()}
            if metadata.complete:
                parameters = _parameters(source, metadata.tensor_count)
                return Facts(values, parameters, metadata.arrays)
    except (gguf.GgufError, OSError) as error:
        tell("the model file %s has no readable metadata: %s", path, error)
        return NOTHING
    tell("the model file %s is incomplete: it ends before its tensors", path)
    return Facts(values, arrays=metadata.arrays)


def _parameters(source: Source, tensors: int) -> int | None:
    try:
        return gguf_tensors.parameter_count(source, tensors)
    except gguf.GgufError:  # no engine will load it, and says so itself
        return None


def read_with_arrays(path: Path) -> dict[str, Any] | None:
    """The metadata as in ``Facts.values`` with its arrays, such as the vocabulary.

    Not cached: it is up to 100 MB of lists. None where it is no readable GGUF file.
    """
    try:
        found = gguf.read(path, arrays=True).values
    except (gguf.GgufError, OSError):
        return None
    return {key: finite(value) for key, value in found.items()}


def finite(value: Any) -> Any:
    """``value``, with None for every number that JSON cannot hold."""
    if isinstance(value, list):
        # All elements are of one type, and a vocabulary of 262,144 texts need not be walked.
        return [finite(each) for each in value] if _may_hold_floats(value) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _may_hold_floats(array: list[Any]) -> bool:
    return bool(array) and isinstance(array[0], (float, list))
