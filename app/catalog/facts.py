"""What a model file says about itself, cached for as long as the file stays the same."""

import logging
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.catalog import gguf
from app.catalog.signature import Signature, signature

log = logging.getLogger(__name__)

_MODELS = 4096  # files remembered; the one looked at longest ago is forgotten first
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Facts:
    """The metadata of one GGUF file: scalars and texts by key, in file order, fit for JSON."""

    values: dict[str, Any]

    @property
    def architecture(self) -> str:
        """``general.architecture``, or "unknown"."""
        return self._text("general.architecture") or _UNKNOWN

    @property
    def size_label(self) -> str:
        """``general.size_label``, such as 7B, or "" where the file has none."""
        return self._text("general.size_label")

    @property
    def context_length(self) -> int:
        """Tokens the model was trained to read at once; 0 where the file does not say."""
        found = self.values.get(f"{self.architecture}.context_length", 0)
        return found if isinstance(found, int) else 0

    def _text(self, key: str) -> str:
        found = self.values.get(key)
        return "" if found is None else str(found)


_NOTHING = Facts({})


class FactsCache:
    """Facts by path. Safe to use from many threads; a file that is new or changed is read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Signature, tuple[Facts, bool]] = OrderedDict()

    def of(self, path: Path) -> Facts:
        """The facts of a file; none where it is missing or no whole GGUF file, logged once."""
        found = signature(path)
        if found is None:
            return _NOTHING
        with self._lock:
            known, settled = self._known.get(found, (None, False))
            if known is not None and settled:
                self._known.move_to_end(found)
                return known
        settled = found.settled  # before reading: what is written meanwhile is not in the facts
        facts = _read(path, say=known is None)
        with self._lock:
            self._known[found] = (facts, settled)
            if len(self._known) > _MODELS:
                self._known.popitem(last=False)
        return facts


def _read(path: Path, say: bool) -> Facts:
    """The facts of the file as it is now; ``say`` what is wrong with it, or not again."""
    level = logging.WARNING if say else logging.DEBUG
    try:
        metadata = gguf.read(path)
    except (gguf.GgufError, OSError) as error:
        log.log(level, "the model file %s has no readable metadata: %s", path, error)
        return _NOTHING
    if not metadata.complete:
        log.log(level, "the model file %s is incomplete: it ends before its tensors", path)
    return Facts({key: _finite(value) for key, value in metadata.values.items()})


def _finite(value: Any) -> Any:
    """``value``, or None for a number that JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
