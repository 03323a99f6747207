"""One child process: started, heard out, watched, and stopped with all that it started."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Thread
from types import TracebackType
from typing import IO

from app.engines.ending import ending
from app.engines.lifeline import ROOT, Signals, tied
from app.engines.prctl import adopt_orphans
from app.engines.proctable import Process, below, every, tell

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK = 0.1  # s; between two looks at what no signal tells
_KILLED = 0.02  # s; what got SIGKILL is gone within


class ChildEnded(Exception):
    """The child is not what it should be; the message says how it ended and its last words."""


class Child:
    """A process in a session of its own, so that Ctrl-C reaches this process alone.

    When this process dies, or the thread that made this, the child gets SIGTERM. What the child
    writes goes to this process's standard error. Leaving the context stops it and all that it
    started, whatever session that is in: this process adopts what loses its parent.
    """

    def __init__(self, name: str, command: Sequence[str], environ: Mapping[str, str],
                 signals: Signals, seconds_to_stop: float) -> None:
        """Start it, in ROOT; `signals` must deliver SIGCHLD beside the ENDING ones.

        An ending signal that comes while a method waits is raised as KeyboardInterrupt. What this
        process starts beside the child, while there is one, counts as the child's.
        """
        self._name = name
        self._signals = signals
        self._seconds_to_stop = seconds_to_stop
        adopt_orphans()
        # A shell that started programs of its own and then became this process.
        self._strangers = {(process.pid, process.started) for process in _below_this(every())}
        self._process = subprocess.Popen(
            tied(command), cwd=ROOT, env=dict(environ), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        assert self._process.stdout
        self._echo = _Echo(self._process.stdout)

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._stop()

    def wait_until(self, answers: Callable[[], bool], limit: float) -> None:
        """Block until it `answers`. Raises ChildEnded, also after `limit` seconds."""
        deadline = time.monotonic() + limit
        while not answers():
            self._require_running()
            if time.monotonic() > deadline:
                raise ChildEnded(f"the {self._name} did not answer within {limit:g} s")
            self._wait(_LOOK)

    def watch(self) -> None:
        """Block until it ends by itself, which is raised as ChildEnded."""
        while True:
            self._require_running()
            self._wait(60.0)

    def _require_running(self) -> None:
        self._left()
        code = self._process.returncode
        if code is not None:
            last = self._echo.last_line()
            raise ChildEnded(f"the {self._name} {ending(code)}" + (f": {last}" if last else ""))

    def _wait(self, seconds: float) -> None:
        if self._signals.wait(seconds) in ENDING:
            raise KeyboardInterrupt

    def _stop(self) -> None:
        """End it by SIGTERM; blocks until it and all that it started are gone.

        What is left after `seconds_to_stop`, or when a further ending signal comes, gets SIGKILL.
        """
        self._process.terminate()
        deadline = time.monotonic() + self._seconds_to_stop
        while self._left() and (seconds := deadline - time.monotonic()) > 0:
            if self._signals.wait(min(seconds, _LOOK)) in ENDING:
                break
        while left := self._left():
            for process in left:
                tell(process, signal.SIGKILL)
            time.sleep(_KILLED)
        self._process.wait()
        self._echo.last_line()  # nothing of it is printed any more

    def _left(self) -> list[Process]:
        """What runs of it and of all that it started; the adopted ones that ended are collected."""
        self._process.poll()
        known = [each for each in every() if (each.pid, each.started) not in self._strangers]
        family = _below_this(known)
        for process in family:
            if process.dead and process.parent == os.getpid() and process.pid != self._process.pid:
                os.waitpid(process.pid, os.WNOHANG)
        return [process for process in family if not process.dead]


def _below_this(among: Iterable[Process]) -> list[Process]:
    return below([os.getpid()], among)


class _Echo:
    """Passes what a child writes on to standard error, and keeps its last line."""

    def __init__(self, source: IO[bytes]) -> None:
        self._last = ""
        self._thread = Thread(target=self._pass_on, args=(source,), daemon=True)
        self._thread.start()

    def last_line(self) -> str:
        """The last one that is not blank; a dead child's last words may still be under way."""
        self._thread.join(1)
        return self._last

    def _pass_on(self, source: IO[bytes]) -> None:
        with source:
            for raw in source:
                line = raw.decode("utf-8", "replace")
                self._last = line.strip() or self._last
                try:
                    print(line, end="", file=sys.stderr, flush=True)
                except OSError:
                    continue  # the terminal is gone; a full pipe would stop the child
