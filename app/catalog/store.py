"""Writes into the registry, so that it holds a file or a model whole or not at all.

Layout: HOME/blobs/sha256-<hex>, and in HOME/models/<directory>/ a relative link per file beside
manifest.json. Only the manifest makes a directory a model, so it is written last. To be used by
one process at a time.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

_PIECE = 1024 * 1024  # bytes copied at a time


class WrongContent(Exception):
    """The bytes are not those that were announced."""


def directory(home: Path, name: str) -> Path:
    """Where the model called `name` lies, whether or not it is there."""
    return home / "models" / name.replace("/", "--").replace(":", "--")


def put_blob(home: Path, source: IO[bytes], sha256: str) -> Path:
    """Copy all of `source` among the blobs; the path of the blob, which is on the disk by then.

    Raises WrongContent when its hex SHA-256 is another, OSError, and what reading raises; nothing
    is left then.
    """
    blobs = home / "blobs"
    blobs.mkdir(parents=True, exist_ok=True)
    blob, partial = blobs / f"sha256-{sha256}", blobs / f".sha256-{sha256}.partial"
    try:
        with partial.open("wb") as out:
            if _copy(source, out) != sha256:
                raise WrongContent(sha256)
            _to_disk(out)
        _put(partial, blob)
    finally:
        partial.unlink(missing_ok=True)
    return blob


def link(home: Path, name: str, file: str, blob: Path) -> Path:
    """Have `file` in the directory of the model lead to `blob`; the path of the link."""
    place = directory(home, name) / file
    place.parent.mkdir(parents=True, exist_ok=True)
    made = place.with_name(f".{file}")
    made.unlink(missing_ok=True)
    os.symlink(os.path.relpath(blob.resolve(), place.parent.resolve()), made)
    _put(made, place)
    return place


def put_manifest(home: Path, manifest: Mapping[str, Any]) -> None:
    """Make the registry list the model that `manifest` names; its files must be there already."""
    place = directory(home, manifest["name"]) / "manifest.json"
    written = place.with_name(".manifest.json")
    with written.open("wb") as out:
        out.write(json.dumps(manifest, indent=2, ensure_ascii=False).encode() + b"\n")
        _to_disk(out)
    _put(written, place)


def _copy(source: IO[bytes], out: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := source.read(_PIECE):
        digest.update(piece)
        out.write(piece)
    return digest.hexdigest()


def _to_disk(out: IO[bytes]) -> None:
    out.flush()
    os.fsync(out.fileno())


def _put(made: Path, place: Path) -> None:
    """Rename, and have the directory on the disk before anything is built on it."""
    os.replace(made, place)
    descriptor = os.open(place.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
