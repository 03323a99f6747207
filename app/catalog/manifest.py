"""One manifest.json of the registry, as ``loop pull`` writes it, read into an Entry.

Fields: name, repo, revision, commit, quant, files [path, size, sha256], pulledAt; and modelfile,
an object that the gateway writes: what Ollama's clients have a model made with.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from app import jsontext
from app.catalog.file_names import is_gguf, is_projector, split_of

MAX_BYTES = 1024 * 1024  # a manifest is some hundred bytes; more is no manifest
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LATEST = 250_000_000_000.0  # s; the year 9892, as later ones end datetime's range


class BadManifest(ValueError):
    """The manifest cannot be used; the message says why in a few words."""


@dataclass(frozen=True)
class FileEntry:
    """One file of a model: its path below the model's directory, bytes, and hex SHA-256 or ""."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """A model of the registry. ``pulled_at`` is ISO 8601 as in the manifest.

    ``repo``, ``revision`` and ``commit`` say where on the hub it is from, "" where it is not.
    """

    name: str
    quant: str
    pulled_at: str
    files: tuple[FileEntry, ...]
    directory: Path
    repo: str = ""
    revision: str = ""
    commit: str = ""
    modelfile: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(file.size for file in self.files)

    @cached_property
    def first(self) -> FileEntry:
        """The file that engines open: part 1 of a split model finds the other parts by itself."""
        weights = [f for f in self.files if is_gguf(f.path) and not is_projector(f.path)]
        return min(weights or self.files, key=lambda file: _part(file.path))

    @property
    def first_file(self) -> Path:
        """Where ``first`` is; nothing says that it is there."""
        return self.directory / self.first.path

    @property
    def created(self) -> int:
        """``pulled_at`` in Unix seconds."""
        return int(parse_time(self.pulled_at).timestamp())


def parse_time(text: str) -> datetime:
    """An ISO 8601 time, UTC where it names no offset; raises ValueError for anything else."""
    # Before Python 3.11 fromisoformat knows neither Z nor fractions of other than 3 or 6 digits.
    plain = re.sub(r"\.(\d{1,9})", lambda m: "." + m[1].ljust(6, "0")[:6], text)
    found = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", plain))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def parse(raw: bytes, directory: Path, mtime: float) -> Entry:
    """The entry that a manifest's bytes describe; raises BadManifest.

    ``mtime`` (Unix seconds) stands in for a ``pulledAt`` that is missing or no time.
    """
    if raw.startswith(b"\xef\xbb\xbf"):
        raise BadManifest("starts with a byte-order mark")
    try:
        data = jsontext.decode(raw)
    except jsontext.JsonError as error:
        raise BadManifest(f"is {error}") from None
    if not isinstance(data, dict):
        raise BadManifest("is no JSON object")
    files = _with_parts(tuple(_files(data.get("files"), directory)), directory)
    return Entry(
        name=_name(data.get("name")),
        quant=_text(data.get("quant")),
        pulled_at=_pulled_at(data.get("pulledAt"), mtime),
        files=files,
        directory=directory,
        repo=_text(data.get("repo")),
        revision=_text(data.get("revision")),
        commit=_text(data.get("commit")),
        modelfile=data["modelfile"] if isinstance(data.get("modelfile"), dict) else {},
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _name(value: Any) -> str:
    if isinstance(value, str) and value.strip() and value.isprintable():
        return value
    raise BadManifest("has no usable name")


def _pulled_at(value: Any, mtime: float) -> str:
    """``value`` if it is a time of RFC 3339, which is what clients read; else the same time as one.

    What is no time at all gives way to the time of the manifest itself.
    """
    try:
        found = parse_time(value).astimezone(timezone.utc)
        return str(value) if _RFC_3339.fullmatch(value) else _rfc_3339(found)
    except (TypeError, ValueError, OverflowError):
        return _rfc_3339(_EPOCH + timedelta(seconds=min(max(mtime, 0.0), _LATEST)))


def _rfc_3339(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _files(value: Any, directory: Path) -> list[FileEntry]:
    if not isinstance(value, list) or not value:
        raise BadManifest("names no files")
    return [_file(item, directory) for item in value]


def _file(item: Any, directory: Path) -> FileEntry:
    path = item.get("path") if isinstance(item, dict) else None
    if not isinstance(path, str) or not PurePosixPath(path).parts or not _can_be(path):
        raise BadManifest("has a file without a path")
    if not stays_below(path):
        raise BadManifest("has a file outside its directory")
    size = item.get("size")
    known = isinstance(size, int) and not isinstance(size, bool) and size >= 0
    return FileEntry(
        path=path,
        size=int(size) if known else _size_on_disk(directory / path),
        sha256=_text(item.get("sha256")),
    )


def _can_be(path: str) -> bool:
    """Whether a file system can hold such a name: half a surrogate pair, say, is none."""
    try:
        return b"\0" not in path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


def stays_below(path: str) -> bool:
    """Whether a path leads nowhere but below the directory that it is relative to."""
    return not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts


def _with_parts(files: tuple[FileEntry, ...], directory: Path) -> tuple[FileEntry, ...]:
    """``files`` and the parts of a split model that lie beside part 1 without being named."""
    named = {file.path for file in files}
    missing = [
        FileEntry(path, _size_on_disk(directory / path), "")
        for file in files
        for path in _parts(file.path)
        if path not in named and (directory / path).is_file()
    ]
    return files + tuple({file.path: file for file in missing}.values())


def _parts(path: str) -> list[str]:
    split = split_of(path)
    return split.all() if split else []


def _part(path: str) -> int:
    split = split_of(path)
    return split.part if split else 0


def _size_on_disk(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):  # ValueError: a path that no file system can hold
        return 0
