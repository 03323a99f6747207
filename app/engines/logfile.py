"""The file that what an engine writes is kept in."""

import logging
from io import FileIO
from pathlib import Path

FOLDER = Path("logs", "engines")  # below the registry's home
LARGEST = 8 * 1024 * 1024  # bytes

log = logging.getLogger(__name__)


class LogFile:
    """A file made anew, and again whenever it would exceed LARGEST bytes; nothing raises.

    The one before is kept as NAME.1, so there are never more than two. What keeps it from being
    written is logged once, and from then on nothing is kept. To be used by one thread at a time.
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
            if self._path.exists():
                self._path.replace(self._path.with_name(self._path.name + ".1"))
            self._file = self._path.open("wb", buffering=0)
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
