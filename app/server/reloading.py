"""Has the configuration read again when it is asked to, or when a file of it has changed."""

import logging
import os
import stat
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue

from app.config import ConfigError

log = logging.getLogger(__name__)

_INTERVAL = 1.0  # s between two looks; a file that is the same at both is written to its end
_NOW, _END = object(), object()

Paths = Callable[[], Sequence[Path]]
State = tuple[int, ...]


class Changes:
    """Tells when files have changed; looks at them only when it is asked."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._known = self._seen = self._look()

    def settled(self) -> bool:
        """Whether the files have changed, and not again since this was asked the last time."""
        before, self._seen = self._seen, self._look()
        if self._seen != before or self._seen == self._known:
            return False
        self._known = self._seen
        return True

    def forget(self) -> None:
        """As the files are now they have not changed."""
        self._known = self._seen = self._look()

    def meet(self) -> None:
        """Files that are named only now have not changed: they have just been read."""
        self._known = {path: self._known.get(path, seen) for path, seen in self._look().items()}

    def _look(self) -> dict[Path, State | None]:
        return {path: _state(path) for path in self._paths()}


class Reloader:
    """One thread that watches the files of the configuration until it is closed."""

    def __init__(self, paths: Paths, reload: Callable[[], None], interval: float = _INTERVAL
                 ) -> None:
        """``reload`` raises ConfigError where the old configuration stays.

        What changes after this counts as changed.
        """
        self._changes = Changes(paths)
        self._reload = reload
        self._interval = interval
        # Not an event: a signal handler may interrupt another one that is setting it.
        self._words: SimpleQueue[object] = SimpleQueue()

    def start(self) -> None:
        """Begin to watch, also what the configuration that has been read now names."""
        self._changes.meet()
        threading.Thread(target=self._run, name="reloader", daemon=True).start()

    def ask(self) -> None:
        """Have the configuration read now, whether its files have changed or not."""
        self._words.put(_NOW)

    def close(self) -> None:
        """Watch no more; does not wait for what has begun."""
        self._words.put(_END)

    def _run(self) -> None:
        while (word := self._next()) is not _END:
            if word is _NOW:
                self._changes.forget()
            elif not self._changes.settled():
                continue
            self._try()
            self._changes.meet()

    def _next(self) -> object:
        try:
            return self._words.get(timeout=self._interval)
        except Empty:
            return None

    def _try(self) -> None:
        try:
            self._reload()
        except ConfigError as error:
            log.error("the configuration is refused, and the one before it goes on to count:")
            for problem in error.problems:
                log.error("  %s", problem)
        except Exception:  # the outermost edge of this thread, which has to go on watching
            log.exception("the configuration could not be read again")


def _state(path: Path) -> State | None:
    """What is another one when the file has changed, or who may read it; None where there is none.

    Nobody writes a file to let others read it, or to forbid it: its mode and ctime tell.
    """
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns,
            found.st_mode, found.st_uid, found.st_gid)
