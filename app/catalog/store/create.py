"""Models made of what is in the registry: another model, or files that were uploaded."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.catalog import gguf_whole
from app.catalog.file_names import is_gguf, label_of
from app.catalog.manifest import FileEntry
from app.catalog.names import require_usable
from app.catalog.problems import BadFile, NotFound, of_disk, shown
from app.catalog.store import entries, file_set
from app.catalog.store.blobs import Blobs, hex_of
from app.catalog.store.manifests import Origin, manifest, origin_of


def from_model(home: Path, name: str, base: str, modelfile: Mapping[str, Any]) -> None:
    """Have a model ``name`` of the files of ``base``, with what the modelfile adds.

    What ``base`` has of its own modelfile holds where the new one says nothing, of ``parameters``
    each by itself. Replaces a model of that name. Raises NotFound, BadName, BadFile and what
    ``entries.put`` raises.
    """
    require_usable(name)
    with of_disk(home), Blobs(home) as blobs:
        entry = entries.find(home, base)
        entries.require_blobs(home, entry)
        for file in entry.files:
            blobs.claim(file.sha256)
        merged = {"from": entry.name, **_merged(entry.modelfile, modelfile)}
        made = manifest(name, origin_of(entry), entry.quant, entry.files, merged)
        entries.put(home, made)


def from_blobs(home: Path, name: str, files: Mapping[str, str],
               modelfile: Mapping[str, Any]) -> None:
    """Have a model of blobs, given as the digest of each file name. Replaces one of that name.

    Raises NotFound for a blob that is not there, BadFile for what is no whole GGUF file, and what
    ``entries.put`` raises.
    """
    require_usable(name)
    with of_disk(home), Blobs(home) as blobs:
        found = list(_files(blobs, files))
        ordered = file_set.ordered(found)
        first = gguf_whole.require(blobs.path(ordered[0].sha256), ordered[0].path)
        quant = label_of(ordered[0].path) or gguf_whole.quantization_of(first)
        entries.put(home, manifest(name, Origin(), quant, ordered, modelfile))


def _files(blobs: Blobs, files: Mapping[str, str]) -> Iterator[FileEntry]:
    for path, digest in files.items():
        file_set.require_path(path)
        blob = blobs.claim(digest)
        if not blob:
            raise NotFound(f"there is no blob '{shown(digest)}': upload it first")
        if not is_gguf(path):
            raise BadFile(f"'{shown(path)}' is no GGUF file by its name")
        gguf_whole.require(blob, path)
        yield FileEntry(path, blob.stat().st_size, hex_of(digest))


def _merged(base: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**base, **added}
    parameters = {**base.get("parameters", {}), **added.get("parameters", {})}
    merged.pop("from", None)
    return {**merged, "parameters": parameters} if parameters else merged
