"""The blobs of a registry: HOME/blobs/sha256-<hex>, each file once, whole from its first moment."""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol

from app.catalog.problems import BadName, WrongContent, shown
from app.catalog.store import disk, locks, partial
from app.catalog.store.partial import PIECE, Partial

BLOB = re.compile(r"sha256-([0-9a-f]{64})")
_DIGEST = re.compile(r"(?:sha256[:-])?([0-9a-fA-F]{64})")
_LOOK = 0.1  # s between two looks at whether another one has finished


class Source(Protocol):
    """Where bytes come from: a file, or a body on the wire."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes, b"" at the end."""


def hex_of(digest: str) -> str:
    """The 64 hex digits of ``sha256:…``, ``sha256-…`` or the digits alone; raises BadName."""
    found = _DIGEST.fullmatch(digest)
    if not found:
        raise BadName(f"'{shown(digest)}' is no SHA-256 digest")
    return found[1].lower()


class Blobs:
    """The blobs of one piece of work: those it asked for stay until it is closed.

    To be used by one thread, in a ``with`` statement.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.directory = home / "blobs"
        self._held: list[int] = []

    def __enter__(self) -> "Blobs":
        self.directory.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        while self._held:
            os.close(self._held.pop())

    def path(self, digest: str) -> Path:
        """Where the blob is, whether or not it is there; raises BadName."""
        return self.directory / f"sha256-{hex_of(digest)}"

    def unfinished(self, digest: str) -> Path:
        """Where the blob grows."""
        return self.directory / f".sha256-{hex_of(digest)}.partial"

    def claim(self, digest: str, size: int | None = None) -> Path | None:
        """The blob, which nobody removes from now on; None unless it is there, of that size."""
        path = self.path(digest)
        while True:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            locks.share(descriptor)
            if not locks.is_at(descriptor, path):
                os.close(descriptor)
            elif size is not None and os.fstat(descriptor).st_size != size:
                os.close(descriptor)
                return None
            else:
                self._held.append(descriptor)
                return path

    def try_open(self, digest: str) -> Partial | None:
        """The right to write the blob; None while another one has it. Never blocks.

        Whoever gets it closes it, after ``finish`` too.
        """
        return partial.try_open(self.unfinished(digest))

    def finish(self, made: Partial, digest: str) -> Path:
        """Make a blob of what was written, and claim it; raises WrongContent, leaving nothing."""
        if made.sha256 != hex_of(digest):
            made.discard()
            raise WrongContent(f"expected sha256:{hex_of(digest)}, got sha256:{made.sha256}")
        os.fsync(made.descriptor)
        with locks.registry(self.home):
            disk.put(made.path, self.path(digest))
            held = os.dup(made.descriptor)
            locks.share(held)
        self._held.append(held)
        return self.path(digest)

    def put(self, source: Source, digest: str,
            waiting: Callable[[], None] = lambda: None) -> Path:
        """Copy all of ``source`` among the blobs and claim it; one that is there is not read.

        Blocks while another one writes the same, and calls ``waiting`` again and again, which ends
        that by raising. Raises WrongContent when the SHA-256 is another, OSError, and what reading
        raises; nothing is left then.
        """
        while not (there := self.claim(digest)):
            made = self.try_open(digest)
            if made:
                return self._copy(source, made, digest)
            waiting()
            time.sleep(_LOOK)
        return there

    def _copy(self, source: Source, made: Partial, digest: str) -> Path:
        try:
            made.restart()
            while piece := source.read(PIECE):
                made.write(piece)
            return self.finish(made, digest)
        finally:
            made.discard()
            made.close()

    def adopt(self, file: Path, digest: str) -> Path | None:
        """Have the file itself be the blob as well, by a hard link, and claim it.

        None where that cannot be: on another file system, or not allowed.
        """
        linked = self.directory / f".sha256-{hex_of(digest)}.link"
        with locks.registry(self.home):
            try:
                linked.unlink(missing_ok=True)
                os.link(file, linked)
            except OSError:
                return None
            disk.sync(linked)
            disk.put(linked, self.path(digest))
            linked.unlink(missing_ok=True)  # renaming to another name of the same file does nothing
        return self.claim(digest)


def remove_unclaimed(path: Path) -> bool:
    """Remove a blob or an unfinished one, unless somebody works with it. Under ``locks.registry``.

    False where it stays, or was gone.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if path.is_symlink():
            path.unlink()
            return True
        return False
    try:
        if not locks.try_lock(descriptor) or not locks.is_at(descriptor, path):
            return False
        path.unlink()
        return True
    finally:
        os.close(descriptor)


def present(home: Path, digest: str) -> int | None:
    """The bytes of a blob that is there, None for one that is not; raises BadName."""
    try:
        return (home / "blobs" / f"sha256-{hex_of(digest)}").stat().st_size
    except FileNotFoundError:
        return None


def put_blob(home: Path, source: Source, digest: str,
             waiting: Callable[[], None] = lambda: None) -> None:
    """As ``Blobs.put``, to be linked to later: until then ``sweep`` may remove it."""
    with Blobs(home) as blobs:
        blobs.put(source, digest, waiting)
