"""A registry as `loop pull` leaves it: HOME/models/<dir>/manifest.json, links into HOME/blobs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes import gguf_writer
from tests.fakes.gguf_writer import Type

PULLED_AT = "2026-10-01T09:30:00Z"


def gguf(metadata: Mapping[str, object]) -> bytes:
    """A GGUF 3 file of these keys: str, int as uint32, float as float32, list as array of str."""
    return gguf_writer.gguf([_pair(key, value) for key, value in metadata.items()])


def _pair(key: str, value: object) -> gguf_writer.Pair:
    if isinstance(value, list):
        return key, Type.ARRAY, (Type.STRING, value)
    kinds = {str: Type.STRING, int: Type.UINT32, float: Type.FLOAT32}
    return key, kinds[type(value)], value


LLAMA = gguf({"general.architecture": "llama", "llama.context_length": 4096})


class RegistryHome:
    """Writes and removes models below `path` as `loop pull` and `loop rm` do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.models = path / "models"
        self.models.mkdir(parents=True)
        (path / "blobs").mkdir()

    def directory(self, name: str) -> Path:
        """Where the model of this name lives."""
        return self.models / name.replace("/", "--").replace(":", "--")

    def add(self, name: str, data: bytes = LLAMA, **fields: Any) -> Path:
        """Pull a model of one file; `fields` replace those of its manifest. Gives its folder."""
        return self.add_files(name, {"model.gguf": data}, **fields)

    def add_files(self, name: str, data: Mapping[str, bytes], **fields: Any) -> Path:
        """Pull a model of several files, the first one first in its manifest."""
        directory = self.directory(name)
        directory.mkdir()
        listed = [self._link(directory / path, part) for path, part in data.items()]
        repo, _, quant = name.partition(":")
        manifest = {"name": name, "repo": repo, "revision": "main", "commit": "4b1c",
                    "quant": quant, "files": listed, "pulledAt": PULLED_AT, **fields}
        self.write_manifest(directory, json.dumps(manifest).encode())
        return directory

    def _link(self, link: Path, data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        blob = self.path / "blobs" / f"sha256-{digest}"
        blob.write_bytes(data)
        link.symlink_to(blob)
        return {"path": link.name, "size": len(data), "sha256": digest}

    def write_manifest(self, directory: Path, data: bytes) -> None:
        """Put these bytes in place as the manifest of `directory`, in one step."""
        directory.mkdir(exist_ok=True)
        part = directory / "manifest.json.part"
        part.write_bytes(data)
        os.replace(part, directory / "manifest.json")

    def remove(self, name: str) -> None:
        """Remove a model; its blobs stay."""
        shutil.rmtree(self.directory(name))
