"""A model of the hub comes into the registry: found, brought, checked, listed."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.catalog import gguf_whole
from app.catalog.hub.client import Hub, Repository
from app.catalog.hub.download import Download
from app.catalog.hub.patience import Patience
from app.catalog.hub.reference import Reference
from app.catalog.hub.selection import Selection, select
from app.catalog.manifest import FileEntry
from app.catalog.names import require_usable
from app.catalog.problems import BadFile, HubUnavailable, of_disk
from app.catalog.progress import Events, Progress, thinned
from app.catalog.store import disk, entries, file_set, partial, references
from app.catalog.store.blobs import Blobs
from app.catalog.store.hashing import sha256_of
from app.catalog.store.manifests import Origin, manifest
from app.catalog.store.verify import VERIFYING

_LOOK = 0.2  # s between two looks at how far another download is


@dataclass(frozen=True)
class Wanted:
    """Which model, and what it is called in the registry: "" for ORG/REPO:QUANT.

    ``checked``: blobs that are there already are read, and brought anew where they are wrong;
    without it that is done for those only that are no whole GGUF files.
    """

    reference: Reference
    name: str = ""
    checked: bool = False


def pull(home: Path, wanted: Wanted, hub: Hub | None = None,
         patience: Patience | None = None) -> Events:
    """Bring a model into the registry, in place of one of its name; the events are Ollama's.

    However it ends, the registry lists the model as it was, or whole; what has been downloaded
    stays, and the next pull goes on from there. Closing the iterator ends it as well. While
    another thread or process downloads the same file, this one waits for it. Raises CatalogError,
    and BadFile for a file that is no whole GGUF file, as ``local.add`` does.
    """
    return thinned(_pull(home, wanted, hub, patience or Patience()))


def _pull(home: Path, wanted: Wanted, hub: Hub | None, patience: Patience) -> Events:
    if wanted.name:
        require_usable(wanted.name)
    work = _Work(hub or Hub(), patience, wanted)
    yield Progress("pulling manifest")
    repository = yield from work.repository()
    selection = select(repository.name, repository.files, wanted.reference.tag)
    for file in selection.files:
        file_set.require_path(file.path)
    name = require_usable(wanted.name or f"{repository.name}:{selection.tag}")
    with of_disk(home), Blobs(home) as blobs:
        entries.require_place(home, name)
        _require_space(blobs, selection, name)
        metadata = []
        for file in selection.files:
            yield from work.obtain(blobs, repository, file)
            called = f"{repository.name}/{file.path}"
            metadata.append(gguf_whole.require(blobs.path(file.sha256), called))
        yield Progress(VERIFYING)
        yield Progress("writing manifest")
        origin = Origin(repository.name, wanted.reference.revision, repository.commit)
        quant = selection.quant or gguf_whole.quantization_of(metadata[0])
        made = manifest(name, origin, quant, selection.files)
        if not _is_listed(home, made):
            entries.put(home, made)
    yield Progress("success", model=name)


@dataclass(frozen=True)
class _Work:
    """What the steps of a pull share."""

    hub: Hub
    patience: Patience
    wanted: Wanted

    def repository(self) -> Generator[Progress, None, Repository]:
        """What the hub has; blocks and tries again as ``patience`` says."""
        tries = 0
        while True:
            try:
                return self.patience.until(self._ask)
            except HubUnavailable as error:
                yield from self.patience.after(error, tries)
                tries += 1

    def _ask(self) -> Repository:
        return self.hub.repository(self.wanted.reference.repo, self.wanted.reference.revision)

    def obtain(self, blobs: Blobs, repository: Repository, file: FileEntry) -> Iterator[Progress]:
        """Have the file among the blobs and claimed, brought by us or by another one."""
        download = Download(self.hub, repository, file, self.patience)
        while not (yield from self._is_there(blobs, file)):
            made = blobs.try_open(file.sha256)
            if not made:
                yield download.at(partial.size_so_far(blobs.unfinished(file.sha256)))
                self.patience.sleep(_LOOK)
                continue
            try:
                if not (yield from self._is_there(blobs, file)):  # finished just now by another one
                    yield from download.into(blobs, made)
                    break
                made.discard()
            finally:
                made.close()
        yield download.at(file.size)

    def _is_there(self, blobs: Blobs, file: FileEntry) -> Generator[Progress, None, bool]:
        blob = blobs.claim(file.sha256, file.size)
        if not blob or not self.wanted.checked and _is_whole(blob):
            return blob is not None
        found = yield from sha256_of(blob, VERIFYING, file.path, self.patience.cancelled)
        return found == file.sha256


def _require_space(blobs: Blobs, selection: Selection, name: str) -> None:
    missing = [file for file in selection.files if not blobs.claim(file.sha256, file.size)]
    needed = sum(
        file.size - partial.size_so_far(blobs.unfinished(file.sha256)) for file in missing)
    disk.require_space(blobs.directory, max(needed, 0), name)


def _is_whole(blob: Path) -> bool:
    try:
        gguf_whole.require(blob)
    except BadFile:
        return False
    return True


def _is_listed(home: Path, made: dict[str, Any]) -> bool:
    """Whether the registry has this very model, so that nothing is to be written."""
    entry = references.find(home, made["name"])
    if not entry or entry.modelfile or not all(
            (entry.directory / file.path).is_file() for file in entry.files):
        return False
    origin = Origin(entry.repo, entry.revision, entry.commit)
    known = manifest(entry.name, origin, entry.quant, entry.files)
    return {**known, "pulledAt": ""} == {**made, "pulledAt": ""}
