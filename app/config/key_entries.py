"""The keys of the configuration and those in a file of their own."""

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from app.config import layers
from app.config.layers import Layer
from app.config.problems import Problem
from app.config.schema import KEY
from app.settings import KeySettings

Read = Callable[[Any, Any, str, str], Any]  # a reader, a value, its path, its source

_MISSING = {
    "name": "is missing: who has the key? Such as name: alice",
    "sha256": "is missing: python -m app.cli keys new NAME makes a key and its entry",
}
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_LONGEST = 16 * 1024 * 1024  # bytes of a file


class KeyEntries:
    """Collects keys; what it refuses becomes a problem of the layer."""

    def __init__(self, layer: Layer, read: Read) -> None:
        self._layer = layer
        self._read = read
        self._seen: dict[tuple[str, str], str] = {}  # field and value → the first that has it

    def settings(self, found: list[Any], file: Path | None) -> tuple[KeySettings, ...]:
        """The keys in ``found`` and, where there is one, in ``file``, which is read here."""
        source = self._layer.values.get(("keys",), (None, ""))[1]
        keys = self._entries(found, source)
        if file is not None:
            keys += self._entries(self._from_file(file), str(file))
        return tuple(keys)

    def _from_file(self, path: Path) -> list[Any]:
        """The entries of a file that nobody but its owner may read: a list, maybe under keys."""
        source = str(path)
        try:
            mode, raw = _read_file(path)
        except OSError as error:
            self._refuse_unread(path, f"names a file that cannot be read: {error.strerror}")
            return []
        if mode & _OTHERS:
            rule = f"is open to others than its owner (mode {mode:04o}); run chmod 600 {path}"
            self._refuse(source, "", rule)
            return []
        data = layers.parse(raw, self._layer, source)
        entries = data.get("keys") if isinstance(data, dict) and set(data) == {"keys"} else data
        if isinstance(entries, list) and entries:
            return entries
        if not any(problem.source == source for problem in self._layer.problems):
            rule = "must hold a list of keys; without keys-file the gateway has none"
            self._refuse(source, "", rule)
        return []

    def _entries(self, found: list[Any], source: str) -> list[KeySettings]:
        keys = (self._entry(data, f"keys[{i}]", source) for i, data in enumerate(found))
        return [key for key in keys if key]

    def _entry(self, data: Any, path: str, source: str) -> KeySettings | None:
        if not isinstance(data, dict):
            self._refuse(source, path, "must be a mapping with name and sha256", data)
            return None
        folded = self._folded(data, path, source)
        for field in _MISSING.keys() - folded.keys():
            self._refuse(source, f"{path}.{field}", _MISSING[field])
        read = {
            field: self._read(KEY[field], value, f"{path}.{field}", source)
            for field, value in folded.items()
        }
        given = {f.replace("-", "_"): value for f, value in read.items() if value is not None}
        for field in ("name", "sha256"):
            if field in given:
                self._require_first(field, given[field], path, source)
        return KeySettings(**given) if {"name", "sha256"} <= given.keys() else None

    def _folded(self, data: Mapping[Any, Any], path: str, source: str) -> dict[str, Any]:
        """``data`` with the names of KEY; others are not shown, as one may be a key itself."""
        known = {name: value for name, value in data.items() if _kebab(name) in KEY}
        if len(known) < len(data):
            rule = f"has a field that no key has; there are {', '.join(KEY)}"
            self._refuse(source, path, rule)
        return layers.fold(KEY, known, path, self._layer, source)

    def _require_first(self, field: str, value: str, path: str, source: str) -> None:
        first = self._seen.setdefault((field, value), f"{path} of {source}")
        if first != f"{path} of {source}":
            self._refuse(source, f"{path}.{field}", f"is that of {first} too; each has its own")

    def _refuse_unread(self, path: Path, rule: str) -> None:
        """The value may be no path at all, but what was to stand behind it."""
        source = self._layer.values[("keys-file",)][1]
        self._refuse(source, "keys-file", rule, path)

    def _refuse(self, source: str, path: str, rule: str, value: Any = None) -> None:
        self._layer.problems.append(Problem(source, path, rule, value))


def _kebab(name: Any) -> str:
    return str(name).replace("_", "-")


def _read_file(path: Path) -> tuple[int, bytes]:
    """Mode and content of a file, of one and the same; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        return stat.S_IMODE(os.fstat(descriptor).st_mode), file.read(_LONGEST)
