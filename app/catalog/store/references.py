"""Which models a registry has, and which blobs they need; read anew each time, and quietly."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from app import jsontext
from app.catalog.manifest import MAX_BYTES, BadManifest, Entry, parse
from app.catalog.names import normal
from app.catalog.signature import signature
from app.catalog.store.blobs import BLOB, remove_unclaimed

MANIFEST = "manifest.json"


def needed(home: Path) -> set[str]:
    """The file names of all blobs that a model needs, also one whose manifest is damaged.

    A directory without a manifest is no model, and needs none.
    """
    found: set[str] = set()
    for directory in _directories(home):
        if (directory / MANIFEST).is_file():
            found.update(_linked(directory))
            found.update(_named(directory))
    return found


def blobs_of(entry: Entry) -> set[str]:
    """The file names of the blobs of one model."""
    named = {f"sha256-{file.sha256}" for file in entry.files}
    return {*filter(BLOB.fullmatch, named), *_linked(entry.directory)}


def links(directory: Path) -> Iterator[Path]:
    """Every link to a blob in a model's directory and below."""
    for folder, folders, files in os.walk(directory):
        for path in (Path(folder, name) for name in (*folders, *files)):
            if path.is_symlink() and BLOB.fullmatch(_target(path)):
                yield path


def remove_unneeded(home: Path, blobs: Iterable[str]) -> None:
    """Remove those of the blobs that no model needs and nobody claims. Under ``locks.registry``."""
    for name in set(blobs) - needed(home):
        remove_unclaimed(home / "blobs" / name)


def find(home: Path, name: str) -> Entry | None:
    """The model of that name, as ``Registry.find`` gives it; None where there is none."""
    for directory in _directories(home):
        entry = read(directory)
        if entry and normal(entry.name) == normal(name):
            return entry
    return None


def read(directory: Path) -> Entry | None:
    """The model in a directory; None where there is none, or only a damaged manifest."""
    try:
        path = directory / MANIFEST
        return parse(_raw(directory), directory, path.stat().st_mtime)
    except (BadManifest, OSError):
        return None


def _raw(directory: Path) -> bytes:
    """The manifest's bytes; raises OSError. Never waits for what is no file."""
    path = directory / MANIFEST
    if signature(path) is None:
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _directories(home: Path) -> list[Path]:
    models = home / "models"
    return sorted(models.iterdir()) if models.is_dir() else []


def _linked(directory: Path) -> set[str]:
    return {_target(link) for link in links(directory)}


def _target(link: Path) -> str:
    return os.path.basename(os.readlink(link))


def _named(directory: Path) -> set[str]:
    """By the manifest alone, whatever else is wrong with it."""
    try:
        files = jsontext.decode(_raw(directory))["files"]
        return {f"sha256-{file['sha256']}" for file in files}
    except (OSError, jsontext.JsonError, LookupError, TypeError):
        return set()
