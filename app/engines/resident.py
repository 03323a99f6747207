"""What the processes of one managed engine really take, without looking again and again."""

from collections.abc import Callable

from app.engines.making import Process

FRESH = 1.0  # s; for which a look counts: it reads all of /proc


class Resident:
    """The resident memory of one engine's process at a time. Safe to use from many threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: tuple[Process, float, int | None] | None = None

    def of(self, process: Process | None, fresh: float = FRESH) -> int | None:
        """Resident bytes of the process, looked up at most ``fresh`` seconds ago.

        None where there is no process or it has ended. Reads /proc.
        """
        if process is None:
            self._seen = None
            return None
        seen, now = self._seen, self._clock()
        if seen and seen[0] is process and now - seen[1] < fresh:
            return seen[2]
        found = process.memory()
        self._seen = process, now, found
        return found
