"""Files of this machine, made models of the registry."""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from urllib.parse import quote

from app.catalog import gguf_whole
from app.catalog.file_names import base_of, is_gguf, is_projector, label_of, split_of
from app.catalog.manifest import FileEntry
from app.catalog.names import require_usable
from app.catalog.problems import BadFile, BadName, WrongContent, of_disk, shown
from app.catalog.progress import Events, Progress, thinned
from app.catalog.signature import signature
from app.catalog.store import disk, entries, file_set
from app.catalog.store.blobs import Blobs
from app.catalog.store.hashing import sha256_of
from app.catalog.store.manifests import Origin, manifest


@dataclass(frozen=True)
class Wanted:
    """What to make a model of: any part of a split stands for all of them.

    ``name`` "" is made of the file's. ``copied``: the registry gets bytes of its own; otherwise
    the file itself becomes the blob as well, where its file system allows, and must not change.
    """

    file: Path
    name: str = ""
    projector: Path | None = None
    copied: bool = False


def add(home: Path, wanted: Wanted, cancelled: Event | None = None) -> Events:
    """Put the files into the registry; the events tell how far that is.

    Raises BadFile for what is no whole GGUF file, BadName, NameTaken, NoSpace, CannotWrite and
    Cancelled; nothing is listed then.
    """
    return thinned(_add(home, wanted, cancelled or Event()))


def _add(home: Path, wanted: Wanted, cancelled: Event) -> Events:
    paths = _all_parts(wanted.file) + ([wanted.projector] if wanted.projector else [])
    metadata = [gguf_whole.require(path) for path in paths]
    quant = label_of(wanted.file.name) or gguf_whole.quantization_of(metadata[0])
    name = require_usable(wanted.name) if wanted.name else _name_for(wanted.file.name, quant)
    names = [_stored(path.name, path == wanted.projector) for path in paths]
    entries.require_place(home, name, replacing=False)
    with of_disk(home), Blobs(home) as blobs:
        files = []
        for path, stored in zip(paths, names):
            sha256, size = yield from _take(blobs, path, wanted.copied, cancelled)
            files.append(FileEntry(stored, size, sha256))
        yield Progress("writing manifest")
        made = manifest(name, Origin(), quant, file_set.ordered(files))
        entries.put(home, made, replacing=False)
    yield Progress("success", model=name)


def _all_parts(file: Path) -> list[Path]:
    split = split_of(file.name)
    if not split:
        return [file]
    parts = [file.with_name(name) for name in split.all()]
    for part in parts:
        if not part.exists():
            raise BadFile(f"the model is not whole: there is no {shown(part)}")
    return parts


def _name_for(file: str, quant: str) -> str:
    base = base_of(file)
    try:
        return require_usable(f"{base}:{quant}" if quant else base)
    except BadName as error:
        raise BadName(f"no name for a model can be made of '{shown(file)}': choose one with "
                      "--name") from error


def _stored(name: str, projector: bool) -> str:
    """What the file is called in the registry: UTF-8, and a projector by its custom."""
    escaped = "".join(
        c if c.isprintable() else quote(c.encode("utf-8", "surrogateescape")) for c in name)
    gguf = escaped if is_gguf(escaped) else f"{escaped}.gguf"
    return file_set.require_path(f"mmproj-{gguf}" if projector and not is_projector(gguf) else gguf)


def _take(blobs: Blobs, path: Path, copied: bool,
          cancelled: Event) -> Generator[Progress, None, tuple[str, int]]:
    """Make the file a blob; its hex SHA-256 and bytes."""
    before = signature(path)
    sha256 = yield from _hash(path, cancelled)
    if before is None or signature(path) != before:
        raise _changed(path)
    if not blobs.claim(sha256, before.size) and (copied or not blobs.adopt(path, sha256)):
        disk.require_space(blobs.directory, before.size, f"a copy of {shown(path)}")
        with path.open("rb") as source:
            try:
                blobs.put(source, sha256)
            except WrongContent as error:
                raise _changed(path) from error
    return sha256, before.size


def _changed(path: Path) -> BadFile:
    return BadFile(f"{shown(path)} changed meanwhile: add it when it is whole")


def _hash(path: Path, cancelled: Event) -> Generator[Progress, None, str]:
    try:
        return (yield from sha256_of(path, "reading", path.name, cancelled))
    except OSError as error:
        raise BadFile(f"{shown(path)} cannot be read: {error.strerror}") from error
