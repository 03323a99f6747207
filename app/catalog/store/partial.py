"""A blob that is being written: it can be gone on with after any interruption."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from app.catalog.store import disk, locks

PIECE = 1024 * 1024  # bytes read at a time


class Partial:
    """The file of an unfinished blob and the right to write it, which ``close`` gives back.

    What has been written stays for the next one. Used by one thread.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self.descriptor = descriptor
        self.path = path
        self.size = 0  # bytes that were read or written here, all of them counted in ``sha256``
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The hex SHA-256 of the first ``size`` bytes."""
        return self._hash.hexdigest()

    def read_on(self) -> Iterator[int]:
        """Read what an earlier try has left; gives ``size`` after every piece."""
        while piece := os.read(self.descriptor, PIECE):
            self._hash.update(piece)
            self.size += len(piece)
            yield self.size

    def write(self, piece: bytes) -> None:
        """Append; what was there before has been read by then, or ``restart`` called."""
        disk.write(self.descriptor, piece)
        self._hash.update(piece)
        self.size += len(piece)

    def restart(self) -> None:
        """Forget all bytes."""
        os.ftruncate(self.descriptor, 0)
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        self.size = 0
        self._hash = hashlib.sha256()

    def discard(self) -> None:
        """Leave nothing behind, unless it has become a blob; ``close`` is still to be called."""
        if locks.is_at(self.descriptor, self.path):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Give the right to write back; nothing is flushed to the disk, and no empty file stays."""
        if not os.fstat(self.descriptor).st_size:
            self.discard()
        os.close(self.descriptor)


def try_open(path: Path) -> Partial | None:
    """The unfinished blob at ``path``, new or as it was left; None while another one writes it.

    Never blocks. Whoever gets it closes it. What is there without being a file is removed.
    """
    while True:
        try:
            descriptor = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        except OSError:
            if not path.is_symlink():
                raise
            path.unlink(missing_ok=True)  # it may lead anywhere
            continue
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            path.unlink(missing_ok=True)
        elif not locks.try_lock(descriptor):
            os.close(descriptor)
            return None
        elif locks.is_at(descriptor, path):
            return Partial(descriptor, path)
        else:
            os.close(descriptor)  # it was finished or removed before the lock was taken


def size_so_far(path: Path) -> int:
    """How many bytes of the unfinished blob there are."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
