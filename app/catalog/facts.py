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
        return str(self.values.get("general.architecture", _UNKNOWN)) or _UNKNOWN

    @property
    def size_label(self) -> str:
        """``general.size_label``, such as 7B, or "" where the file has none."""
        return str(self.values.get("general.size_label", ""))

    @property
    def context_length(self) -> int:
        """Tokens the model was trained to read at once; 0 where the file does not say."""
        found = self.values.get(f"{self.architecture}.context_length", 0)
        return found if isinstance(found, int) else 0


_NOTHING = Facts({})


class FactsCache:
    """Facts by path. Safe to use from many threads; a file that is new or changed is read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Signature, Facts] = OrderedDict()

    def of(self, path: Path) -> Facts:
        """The facts of a file; none where it is missing or no whole GGUF file, logged once."""
        found = signature(path)
        if found is None:
            return _NOTHING
        with self._lock:
            known = self._known.get(found)
            if known is not None:
                self._known.move_to_end(found)
                return known
        facts = _read(path)
        if found.settled:
            self._remember(found, facts)
        return facts

    def _remember(self, found: Signature, facts: Facts) -> None:
        with self._lock:
            self._known[found] = facts
            if len(self._known) > _MODELS:
                self._known.popitem(last=False)


def _read(path: Path) -> Facts:
    try:
        metadata = gguf.read(path)
    except (gguf.GgufError, OSError) as error:
        log.warning("the model file %s has no readable metadata: %s", path, error)
        return _NOTHING
    if not metadata.complete:
        log.warning("the model file %s is incomplete: it ends before its tensors", path)
    return Facts({key: _finite(value) for key, value in metadata.values.items()})


def _finite(value: Any) -> Any:
    """``value``, or None for a number that JSON cannot hold."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
