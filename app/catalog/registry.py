"""The registry of pulled models: HOME/models/<dir>/manifest.json, read anew where it changed."""

import logging
import math
import os
import threading
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from app.catalog.manifest import MAX_BYTES, BadManifest, Entry, parse
from app.catalog.names import normal
from app.catalog.signature import Signature, signature, unchanged

log = logging.getLogger(__name__)

_BEING_WRITTEN = 1.0  # s; a bad manifest younger than this may be half way through a rewrite
_REREADS = 5
_NEVER = -1  # a time that no file has


@dataclass(frozen=True)
class _Read:
    """What one manifest held when it had this signature: an entry, or nothing usable."""

    signature: Signature
    entry: Entry | None


class Registry:
    """All models that have a manifest. Safe to use from many threads; never blocks on a writer."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._models = home / "models"
        self._lock = threading.Lock()
        self._read: dict[Path, _Read] = {}
        self._by_name: dict[str, Entry] = {}
        self._scanned = -math.inf

    def entries(self) -> list[Entry]:
        """Every model, sorted by name. A directory without a manifest is an unfinished pull.

        A manifest that cannot be used hides only its own model and is logged once. Of two
        directories with one name the first, by directory, counts.
        """
        return sorted(self._scan().values(), key=lambda entry: entry.name)

    def _scan(self) -> dict[str, Entry]:
        """The models by the normal form of their names."""
        began = time.monotonic()
        with self._lock:
            before = dict(self._read)
        paths = _manifests(self._models)
        found = {path: read for path in paths if (read := _refresh(path, before))}
        entries: dict[str, Entry] = {}
        for read in found.values():
            if read.entry:
                entries.setdefault(normal(read.entry.name), read.entry)
        with self._lock:
            self._read, self._by_name, self._scanned = found, entries, began
        return entries

    def find(self, name: str, age: float = 0) -> Entry | None:
        """The model of that name, as ``names`` compares it; one that is known costs one stat.

        That there is none may be ``age`` seconds old; else it costs a look at all of them.
        """
        with self._lock:
            scanned = self._scanned
            entry = self._by_name.get(normal(name))
            read = self._read.get(entry.directory / "manifest.json") if entry else None
        if not entry and time.monotonic() - scanned < age:
            return None
        if entry and read and read.signature.settled:
            if signature(entry.directory / "manifest.json") == read.signature:
                return entry
        return self._scan().get(normal(name))


def _manifests(models: Path) -> list[Path]:
    """Where a manifest may be, sorted by directory."""
    try:
        with os.scandir(models) as directories:
            return [_manifest(path) for path in sorted(item.path for item in directories)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        log.warning("the registry %s cannot be listed: %s", models, error.strerror)
        return []


@lru_cache(maxsize=65_536)
def _manifest(directory: str) -> Path:
    """Where a directory's manifest is; the same Path each time, as making one costs a stat."""
    return Path(directory, "manifest.json")


def _refresh(path: Path, before: dict[Path, _Read]) -> _Read | None:
    """What the manifest holds now; None where there is none."""
    known = before.get(path)
    if known and known.signature.settled and unchanged(path, known.signature):
        return known
    found = signature(path)
    if found is None:
        return None
    try:
        return _Read(found, _read_calmly(path, found))
    except (BadManifest, OSError) as error:
        if _is_young(found) and known and known.entry:
            # Being rewritten: what it held a moment ago counts, until the next look.
            return replace(known, signature=replace(found, mtime=_NEVER))
        if not known or known.entry or known.signature != found:
            log.warning("the manifest %s is ignored: it %s", path, error)
        return _Read(found, None)


def _read_calmly(path: Path, found: Signature) -> Entry:
    """Read and parse, again and again within milliseconds while a writer is at it."""
    for _ in range(_REREADS - 1):
        try:
            return _read(path, found)
        except BadManifest:
            if not _is_young(found):
                raise
        time.sleep(0.002)
    return _read(path, found)


def _is_young(found: Signature) -> bool:
    return 0 <= time.time() - found.mtime / 1e9 < _BEING_WRITTEN


def _read(path: Path, found: Signature) -> Entry:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise BadManifest(f"is larger than {MAX_BYTES} bytes")
    return parse(raw, path.parent, found.mtime / 1e9)
