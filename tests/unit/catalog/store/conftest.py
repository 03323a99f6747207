"""A registry with a model in it, written as everything writes it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import pytest

from app.catalog.manifest import FileEntry
from app.catalog.store import entries
from app.catalog.store.blobs import Blobs
from app.catalog.store.manifests import Origin, manifest

Put = Callable[..., None]
ORIGIN = Origin("org/m", "main", "4b1c")


def sha256(data: bytes) -> str:
    """Its hex digits."""
    return hashlib.sha256(data).hexdigest()


def put_model(home: Path, name: str, files: Mapping[str, bytes], replacing: bool = True) -> None:
    """Have a model of these files in the registry."""
    with Blobs(home) as blobs:
        for data in files.values():
            blobs.put(BytesIO(data), sha256(data))
        listed = [FileEntry(path, len(data), sha256(data)) for path, data in files.items()]
        entries.put(home, manifest(name, ORIGIN, "Q8_0", listed), replacing)


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """A function that puts a model of these files into tmp_path."""
    def done(name: str, files: Mapping[str, bytes], replacing: bool = True) -> None:
        put_model(tmp_path, name, files, replacing)
    return done


def blobs_in(home: Path) -> set[str]:
    """The names of all that is among the blobs, hidden files too."""
    return {path.name for path in (home / "blobs").iterdir()}
