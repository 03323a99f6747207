"""Whether the files of models are still those of their manifests."""

import os
import stat
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from app.catalog.manifest import Entry, FileEntry
from app.catalog.progress import Progress
from app.catalog.store.hashing import sha256_of

VERIFYING = "verifying sha256 digest"


@dataclass(frozen=True)
class Checked:
    """One file of a model: ``problem`` says what is wrong with it, "" for nothing."""

    model: str
    file: str
    size: int
    problem: str


def verify(
    models: Sequence[Entry], cancelled: Event | None = None
) -> Iterator[Progress | Checked]:
    """Read all files of these models: how far that is, and what came out for each file.

    A blob that several models share is read once. Changes nothing. Raises Cancelled.
    """
    known: dict[Path, str] = {}
    for entry in models:
        for file in entry.files:
            place = Path(os.path.realpath(entry.directory / file.path))
            problem = _problem_of_size(place, file)
            if not problem and file.sha256:
                if place not in known:
                    known[place] = yield from _hash(place, file, cancelled or Event())
                problem = _difference(known[place], file)
            yield Checked(entry.name, file.path, file.size, problem)


def _problem_of_size(place: Path, file: FileEntry) -> str:
    try:
        found = place.stat()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if not stat.S_ISREG(found.st_mode):
        return "is no regular file"
    return "" if found.st_size == file.size else f"has {found.st_size} bytes, not {file.size}"


def _hash(place: Path, file: FileEntry, cancelled: Event) -> Generator[Progress, None, str]:
    """Its hex SHA-256, or a sentence on why it has none."""
    try:
        return (yield from sha256_of(place, VERIFYING, file.path, cancelled))
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _difference(found: str, file: FileEntry) -> str:
    if found == file.sha256.lower():
        return ""
    return f"has other bytes: sha256:{found}" if len(found) == 64 else found
