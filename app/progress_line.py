"""How far something is, for people: one line that is written over, or now and then a new one."""

import shutil
import sys
import time

_MB = 1_000_000
_BAR = 24  # characters
_INTERVAL = 5.0  # s between two lines where nothing can be written over
_REDRAW = 0.1  # s on a terminal


class ProgressLine:
    """A line on standard error that counts up to ``total`` bytes.

    On a terminal it is a bar, written over; elsewhere a new line every five seconds. Whoever makes
    it calls ``end``, also when it did not get that far.
    """

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._terminal = sys.stderr.isatty()
        self._next = 0.0
        self._began: tuple[float, int] | None = None  # when, and how many bytes were there then

    def show(self, done: int) -> None:
        """So many bytes are there; written only if the last time is some time ago."""
        now = time.monotonic()
        self._began = self._began or (now, done)
        if now >= self._next:
            self._next = now + (_REDRAW if self._terminal else _INTERVAL)
            self._write(done)

    def end(self, complete: bool) -> None:
        """The last word; ``complete``: all bytes are there."""
        if complete:
            self._write(self._total)
        if self._terminal:
            print(file=sys.stderr, flush=True)

    def _write(self, done: int) -> None:
        done = min(done, self._total)
        text = f"{self._what}: {done // _MB} of {self._total // _MB} MB"
        if not self._terminal:
            print(text, file=sys.stderr, flush=True)
            return
        filled = _BAR * done // max(self._total, 1)
        bar = f"[{'#' * filled:<{_BAR}}] {100 * done // max(self._total, 1):3d} %"
        line = f"{bar} {text}{self._rate(done)}"[:shutil.get_terminal_size().columns - 1]
        print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)

    def _rate(self, done: int) -> str:
        """Megabytes in a second, and the time that is left at that rate."""
        since, there = self._began or (0.0, done)
        seconds = time.monotonic() - since
        if seconds < 1 or done <= there:
            return ""
        rate = (done - there) / seconds
        left = int((self._total - done) / rate)
        return f", {rate / _MB:.1f} MB/s, {left // 60}:{left % 60:02d} left"
