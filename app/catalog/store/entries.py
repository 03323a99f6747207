"""Models in the registry: put there, copied, removed."""

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.catalog.manifest import MAX_BYTES, Entry
from app.catalog.names import directory_of, normal, require_usable
from app.catalog.problems import BadFile, CannotWrite, NameTaken, NotFound, of_disk, shown
from app.catalog.store import disk, locks, references
from app.catalog.store.manifests import manifest, origin_of
from app.catalog.store.references import MANIFEST

_WRITTEN = ".manifest.json"
# By these a file is not there: manifests of others may name anything.
_NO_FILE = (errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR)


def directory(home: Path, name: str) -> Path:
    """Where a new model of that name would lie."""
    return home / "models" / directory_of(name)


def find(home: Path, name: str) -> Entry:
    """The model of that name; raises NotFound."""
    entry = references.find(home, name)
    if not entry:
        raise NotFound(f"there is no model '{shown(name)}' in {home}")
    return entry


def put(home: Path, made: Mapping[str, Any], replacing: bool = True) -> None:
    """Have the registry list the model that this manifest describes, in place of one of its name.

    The caller has claimed the blobs. Blobs that only the replaced model needed are removed. Raises
    BadName, NameTaken (without ``replacing`` also for a model of that name), NoSpace, CannotWrite.
    """
    require_usable(made["name"])
    with of_disk(home), locks.registry(home):
        _put(home, made, replacing)


def _put(home: Path, made: Mapping[str, Any], replacing: bool = True) -> None:
    text = _text_of(made)
    place = require_place(home, made["name"], replacing)
    before = references.find(home, made["name"])
    needed_before = references.blobs_of(before) if before else set()
    blobs = {file["path"]: home / "blobs" / f"sha256-{file['sha256']}" for file in made["files"]}
    for path, blob in blobs.items():
        if not blob.is_file():
            raise CannotWrite(f"the blob of {path} was removed meanwhile: start again")
    _make_directory(place)
    links = {place / path: _relative(place, path, blob) for path, blob in blobs.items()}
    changed = {link: target for link, target in links.items() if _target(link) != target}
    if before and changed:
        # Old manifest and new files would be a model that never was.
        _unlist(before)
    for link, target in changed.items():
        _link(link, target)
    _write_manifest(place, text)
    named = {place / file.path for file in before.files} if before else set()
    _remove_files(place, {*named, *references.links(place)} - set(links))
    references.remove_unneeded(home, needed_before)


def require_place(home: Path, name: str, replacing: bool = True) -> Path:
    """Where a model of that name lies or would lie; raises NameTaken and CannotWrite."""
    before = references.find(home, name)
    if before and not replacing:
        raise NameTaken(f"there is a model '{before.name}' already: remove it first, or choose "
                        "another name")
    place = before.directory if before else _free_place(home, name)
    if place.is_symlink():
        raise CannotWrite(f"{place} is a link, so what is written there would lie elsewhere: "
                          "remove it, or choose another name")
    return place


def _free_place(home: Path, name: str) -> Path:
    place = directory(home, name)
    there = references.read(place)
    if there and normal(there.name) != normal(name):
        raise NameTaken(f"'{shown(name)}' would lie where '{shown(there.name)}' does: choose "
                        "another name")
    return place


def _make_directory(place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    disk.sync(place.parent)


def _relative(place: Path, path: str, blob: Path) -> str:
    folder = (place / path).parent
    folder.mkdir(parents=True, exist_ok=True)
    if not folder.resolve().is_relative_to(place.resolve()):
        raise CannotWrite(f"{folder} leads out of the registry")
    return os.path.relpath(blob.parent.resolve() / blob.name, folder.resolve())


def _target(link: Path) -> str | None:
    return os.readlink(link) if link.is_symlink() else None


def _link(link: Path, target: str) -> None:
    made = link.with_name(f".{link.name}")
    made.unlink(missing_ok=True)
    os.symlink(target, made)
    disk.put(made, link)


def _text_of(made: Mapping[str, Any]) -> bytes:
    text = json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False)
    found = text.encode("utf-8", "backslashreplace") + b"\n"
    if len(found) > MAX_BYTES:
        raise BadFile(f"what the model '{made['name']}' adds to its files is longer than "
                      f"{MAX_BYTES} bytes: shorten it")
    return found


def _write_manifest(place: Path, text: bytes) -> None:
    written = place / _WRITTEN
    written.unlink(missing_ok=True)
    with written.open("xb") as out:
        disk.write(out.fileno(), text)
        os.fsync(out.fileno())
    disk.put(written, place / MANIFEST)


def _unlist(entry: Entry) -> None:
    (entry.directory / MANIFEST).unlink(missing_ok=True)
    disk.sync(entry.directory)


def _remove_files(place: Path, files: set[Path]) -> None:
    """Remove files of a model, and the directories below ``place`` that are empty then."""
    for file in files:
        if Path(os.path.realpath(file.parent)).is_relative_to(os.path.realpath(place)):
            _remove_file(file)
        for parent in file.relative_to(place).parents:
            _remove_if_empty(place / parent)


def _remove_file(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:  # something is in it, or it is a link
        pass


def forget_unfinished(place: Path) -> bool:
    """Remove what an interrupted change left in a directory without a manifest.

    Whether the directory is gone then: what others put there stays. Under ``locks.registry``.
    """
    (place / _WRITTEN).unlink(missing_ok=True)
    _remove_files(place, {place / _WRITTEN, *references.links(place)})
    return not place.exists()


def remove(home: Path, name: str) -> None:
    """Remove a model, and the blobs that no other model needs; raises NotFound, CannotWrite."""
    with of_disk(home), locks.registry(home):
        entry = find(home, name)
        blobs = references.blobs_of(entry)
        if entry.directory.is_symlink():
            entry.directory.unlink()
        else:
            _unlist(entry)
            _remove_files(entry.directory, {entry.directory / file.path for file in entry.files})
            forget_unfinished(entry.directory)
        references.remove_unneeded(home, blobs)


def copy(home: Path, source: str, destination: str) -> None:
    """Have a second model of the same files, in place of one called ``destination``.

    Raises NotFound, BadName, BadFile where the files are no blobs, and what ``put`` raises.
    """
    require_usable(destination)
    with of_disk(home), locks.registry(home):
        entry = find(home, source)
        if normal(source) == normal(destination):
            return
        require_blobs(home, entry)
        made = manifest(destination, origin_of(entry), entry.quant, entry.files, entry.modelfile)
        _put(home, made)


def require_blobs(home: Path, entry: Entry) -> None:
    """Raises BadFile unless all files of a model are blobs, which other models can share."""
    for file in entry.files:
        if not (home / "blobs" / f"sha256-{file.sha256}").is_file():
            raise BadFile(f"the file {shown(file.path)} of '{entry.name}' is not among the blobs: "
                          "add it to the registry first")
