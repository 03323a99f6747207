"""Takes away what no model needs: blobs, unfinished downloads, directories without a manifest."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.catalog.problems import of_disk
from app.catalog.store import locks, references
from app.catalog.store.blobs import BLOB, remove_unclaimed
from app.catalog.store.entries import forget_unfinished
from app.catalog.store.references import MANIFEST

BLOB_UNUSED, UNFINISHED = "blob", "unfinished"


@dataclass(frozen=True)
class Removed:
    """What was removed: its path, the bytes that are free now, and which kind of thing it was."""

    path: Path
    size: int
    kind: str


def sweep(home: Path) -> list[Removed]:
    """Remove what no model needs and nobody works with; raises CannotWrite.

    A download that was interrupted starts anew then, and a blob that was uploaded for a model
    still to be made is gone.
    """
    with of_disk(home), locks.registry(home):
        return [*_directories(home / "models"), *_blobs(home)]


def _directories(models: Path) -> Iterator[Removed]:
    for directory in sorted(models.iterdir()) if models.is_dir() else ():
        if directory.is_dir() and not directory.is_symlink():
            if not (directory / MANIFEST).is_file() and forget_unfinished(directory):
                yield Removed(directory, 0, UNFINISHED)


def _blobs(home: Path) -> Iterator[Removed]:
    blobs = home / "blobs"
    needed = references.needed(home)
    for path in sorted(blobs.iterdir()) if blobs.is_dir() else ():
        kind = _kind(path.name)
        if kind and path.name not in needed:
            size = path.lstat().st_size
            if remove_unclaimed(path):
                yield Removed(path, size, kind)


def _kind(name: str) -> str | None:
    if BLOB.fullmatch(name):
        return BLOB_UNUSED
    stem, _, ending = name.removeprefix(".").rpartition(".")
    return UNFINISHED if ending in ("partial", "link") and BLOB.fullmatch(stem) else None
