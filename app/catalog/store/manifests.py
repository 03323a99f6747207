"""What is written into a manifest: the fields of ``loop pull`` first, then our own one."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from app.catalog.manifest import Entry, FileEntry


@dataclass(frozen=True)
class Origin:
    """Where on the hub a model is from; all empty for one that is not."""

    repo: str = ""
    revision: str = ""
    commit: str = ""


def manifest(name: str, origin: Origin, quant: str, files: Sequence[FileEntry],
             modelfile: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A manifest of now. ``modelfile`` is what Ollama's clients have the model made with."""
    made: dict[str, Any] = {
        "name": name,
        **asdict(origin),
        "quant": quant,
        "files": [asdict(file) for file in files],
        "pulledAt": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {**made, "modelfile": dict(modelfile)} if modelfile else made


def origin_of(entry: Entry) -> Origin:
    """Where a model of the registry is from."""
    return Origin(entry.repo, entry.revision, entry.commit)
