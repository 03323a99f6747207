"""The file that what an engine writes is kept in."""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

FOLDER = Path("logs", "engines")  # below the registry's home
LARGEST = 8 * 1024 * 1024  # bytes
_MOST = 100  # processes at a time that write files of one name

log = logging.getLogger(__name__)


class LogFile:
    """A file made anew, and again whenever it would exceed LARGEST bytes; nothing raises.

    The one before is kept as NAME.1, so there are never more than two. While another process or
    engine writes the file of that name, it is that of the first free name of NAME-2, NAME-3 … (the
    number before the suffix). What keeps it from being written is logged once, and from then on
    nothing is kept. To be used by one thread at a time.
    """

    def __init__(self, path: Path) -> None:
        """Directories are made where they are missing."""
        self._path = path
        self._file: FileIO | None = None
        self._size = 0
        self._begin()

    def write(self, data: bytes) -> None:
        """Add `data`, which is in the file on return."""
        if self._file is None:
            return
        if self._size + len(data) > LARGEST:
            self._begin()
        self._add(data)

    def close(self) -> None:
        """Close the file; what is written afterwards is lost."""
        if self._file:
            self._file.close()
        self._file = None

    def _begin(self) -> None:
        self.close()
        self._size = 0
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = next(filter(None, map(_owned, _names(self._path))), None)
            if self._file is None:
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        except OSError as error:
            self._give_up(error)

    def _add(self, data: bytes) -> None:
        self._size += len(data)
        try:
            while self._file and data:
                data = data[self._file.write(data):]
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        log.warning("what the engine writes is not kept: %s: %s", self._path, error.strerror)
        self.close()


def _names(path: Path) -> Iterator[Path]:
    yield path
    for number in range(2, _MOST + 1):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")


def _owned(path: Path) -> FileIO | None:
    """The file, empty and locked until it is closed; None where somebody else writes it."""
    before = path.open("ab", buffering=0)
    if not _locked(before, path):
        before.close()
        return None
    if not os.fstat(before.fileno()).st_size:
        return before
    with before:  # its lock is kept until the next file has one
        path.replace(path.with_name(path.name + ".1"))
        with suppress(FileExistsError):
            file = path.open("xb", buffering=0)
            if _locked(file, path):
                return file
            file.close()
    return None


def _locked(file: FileIO, path: Path) -> bool:
    """Whether the file is ours now (flock(2)), and still the one of that name."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:  # a file system without locks
        file.close()
        raise
