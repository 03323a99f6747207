"""One child process: started, heard out, and stopped for certain."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import IO

from app.engines.ending import ending
from app.engines.lifeline import ROOT, Signals, tied

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LAST_LINES = 8
_TAIL = 16 * 1024  # bytes of a log that are looked at for its last lines


class Child:
    """One running process in a session of its own, so that Ctrl-C reaches this process alone.

    When this process dies, or the thread that started it, the child gets SIGTERM. What it writes
    goes to the file `log`, made anew, or without one to this process's standard error.
    """

    def __init__(self, name: str, command: Sequence[str], environ: Mapping[str, str],
                 log: Path | None = None) -> None:
        self.name = name
        output = log.open("wb") if log else None
        try:
            self._process = subprocess.Popen(
                tied(command), cwd=ROOT, env=dict(environ), stdin=subprocess.DEVNULL,
                stdout=output or subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        finally:
            if output:
                output.close()
        self.log = log
        self._echo = _Echo(self._process.stdout) if self._process.stdout else None

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its process group."""
        return self._process.pid

    def ended(self) -> str | None:
        """None while it runs, then a sentence: how it ended and the last line it wrote."""
        code = self._process.poll()
        if code is None:
            return None
        said = "".join(f": {line}" for line in self.last_lines()[-1:])
        more = f" (its log: {self.log})" if self.log else ""
        return f"the {self.name} {ending(code)}{said}{more}"

    def last_lines(self) -> list[str]:
        """The last lines it wrote, blank ones left out."""
        if self._echo:
            return self._echo.last_lines()
        return _tail(self.log) if self.log else []

    def stop(self, signals: Signals, seconds: float) -> None:
        """End it and all that it started, by SIGTERM; blocks until it is gone.

        What is left after `seconds`, or when a further ending signal comes, gets SIGKILL.
        """
        if self._process.poll() is None:
            self._process.terminate()
        deadline = time.monotonic() + seconds
        while self._process.poll() is None and (left := deadline - time.monotonic()) > 0:
            if signals.wait(min(left, 0.1)) in ENDING:
                break
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # nothing was left
        self._process.wait()


class _Echo:
    """Passes what a child writes on to standard error, and keeps its last lines."""

    def __init__(self, source: IO[bytes]) -> None:
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._thread = Thread(target=self._pass_on, args=(source,), daemon=True)
        self._thread.start()

    def last_lines(self) -> list[str]:
        self._thread.join(1)  # a dead child's last words may still be under way
        return list(self._lines)

    def _pass_on(self, source: IO[bytes]) -> None:
        with source:
            for raw in source:
                line = raw.decode("utf-8", "replace")
                if line.strip():
                    self._lines.append(line.strip())
                try:
                    print(line, end="", file=sys.stderr, flush=True)
                except OSError:
                    continue  # the terminal is gone; a full pipe would stop the child


def _tail(log: Path) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return [line.strip() for line in lines if line.strip()][-_LAST_LINES:]
