"""The last lines of what a process writes, fit to be shown, in bounded memory."""

import re
import threading
from collections import deque

LINES = 50
LONGEST = 500  # bytes of a line; the rest of it is left out

_LINE_END = re.compile(rb"[\r\n]+")  # a progress bar draws itself anew after \r
# Colours, titles and the like: ECMA-48, 5.4 (control sequences) and 5.6 (control strings).
_ESCAPES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


class LastLines:
    """At most LINES lines, none blank, each of at most LONGEST bytes. Safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: deque[str] = deque(maxlen=LINES)
        self._open = b""  # the line whose end has not come

    def add(self, data: bytes) -> None:
        """More has been written, cut anywhere."""
        begun, *others = _LINE_END.split(data)
        with self._lock:
            self._open += begun[:LONGEST + 1 - len(self._open)]
            if others:
                *whole, last = others
                self._lines.extend(_shown([self._open, *whole]))
                self._open = last[:LONGEST + 1]

    def all(self) -> list[str]:
        """The oldest first; one whose end has not come is the last."""
        with self._lock:
            return [*self._lines, *_shown([self._open])][-LINES:]


def _shown(lines: list[bytes]) -> list[str]:
    """The last LINES of them that are not blank."""
    shown: list[str] = []
    for line in reversed(lines):
        if len(shown) == LINES:
            break
        if text := _printable(line):
            shown.append(text)
    return shown[::-1]


def _printable(line: bytes) -> str:
    cut = "…" if len(line) > LONGEST else ""
    text = _ESCAPES.sub(b"", line[:LONGEST]).decode("utf-8", "replace").strip()
    return "".join(c if c.isprintable() else " " for c in text).strip() + cut
