"""One managed engine's processes: started, heard out, and gone when they are said to be."""

import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from app.cpus import on_every
from app.engines.ending import ending
from app.engines.guard import KILL, STOP
from app.engines.last_lines import LastLines
from app.engines.lifeline import ROOT
from app.engines.listening import Listener, listener, ports_of
from app.engines.logfile import LogFile
from app.engines.orphans import end_marked
from app.engines.proctable import below, every

_MARK = "LOOP_ENGINE_PROCESS"  # in the environment of one engine's processes
_BIRTH = 10.0  # s; far more than the guard needs to begin
_DEATH = 2.0  # s; within which what got SIGKILL is gone
_LAST_WORDS = 1.0  # s; for what was written before the end
_PIECE = 65536  # bytes read at a time


class EngineProcess:
    """An engine below its guard (`app/engines/guard.py`). Safe to use from many threads.

    If this process dies, the guard ends the engine within two seconds.
    """

    def __init__(self, command: Sequence[str], log: Path, seconds_to_stop: float,
                 marks: Mapping[str, str], directory: Path | None = None) -> None:
        """Start it in this process's directory and environment, without LOOP_ but with `marks`.

        With `directory` it runs there instead. What it writes goes to `log` (see LogFile).
        `seconds_to_stop` is what it gets to stop in. Blocks until the guard runs. Raises OSError
        where there can be no further process.
        """
        self._seconds_to_stop = seconds_to_stop
        self._mark = secrets.token_hex(16)
        self._lines = LastLines()
        self._gone = threading.Event()
        self._lock = threading.Lock()
        self._channel, guards_end = socket.socketpair()
        try:
            with guards_end:
                arguments = [str(seconds_to_stop), str(directory or Path.cwd()), *command]
                self._guard = _guard(arguments, guards_end, {**marks, _MARK: self._mark})
        except BaseException:
            self._channel.close()
            raise
        assert self._guard.stdout
        self._reader = _thread("output", self._read, self._guard.stdout, LogFile(log))
        self._pid = self._told_pid()
        _thread("end", self._watch)

    @property
    def pid(self) -> int:
        """The process id of the command itself, below which all others of the engine are."""
        return self._pid

    def ended(self) -> str | None:
        """None while any of it runs; then how it ended, such as `ended with exit code 3`."""
        return ending(self._guard.returncode) if self._gone.is_set() else None

    def last_line(self) -> str:
        """The last line it wrote that is not blank, or ""."""
        return next(iter(self.last_lines()[-1:]), "")

    def last_lines(self) -> list[str]:
        """The last lines it wrote (see LastLines); all of them once it has ended."""
        return self._lines.all()

    def wait(self, seconds: float | None = None) -> bool:
        """Block until it has ended and all it started is gone; False if not within `seconds`."""
        return self._gone.wait(seconds)

    def stop(self) -> None:
        """End it by SIGTERM, and after `seconds_to_stop` by SIGKILL; blocks until all is gone.

        That takes at most two seconds more, except where the kernel cannot end a process.
        """
        self._tell(STOP)
        if not self.wait(self._seconds_to_stop + _DEATH / 2):
            self._kill_guard()
            self.wait(_DEATH / 2)

    def kill(self) -> None:
        """End all of it by SIGKILL; blocks until it is gone, for at most two seconds as `stop`."""
        self._tell(KILL)
        if not self.wait(_DEATH / 2):
            self._kill_guard()
            self.wait(_DEATH / 2)

    def listener(self, port: int) -> Listener:
        """Who listens on this port of 127.0.0.1: this engine, a stranger, or nobody."""
        return listener(port, self._tree)

    def ports(self) -> set[int]:
        """The TCP ports that it listens on, wherever."""
        return ports_of(self._tree())

    def memory(self) -> int | None:
        """Resident bytes of all its processes, the guard left out; None once it has ended.

        Pages that two of them share count twice: to tell them apart (smaps_rollup) the kernel
        would go through all pages of a model each time.
        """
        sizes = [size for size in map(_resident, self._tree()) if size is not None]
        return sum(sizes) if sizes else None

    def _tree(self) -> list[int]:
        if self._gone.is_set():
            return []
        return [process.pid for process in below([self._guard.pid], every()) if not process.dead]

    def _tell(self, word: bytes) -> None:
        with self._lock, suppress(OSError):  # the guard has ended
            self._channel.send(word)

    def _kill_guard(self) -> None:
        """For a guard that does nothing, because it was stopped by SIGSTOP for example."""
        self._guard.kill()

    def _told_pid(self) -> int:
        self._channel.settimeout(_BIRTH)
        try:
            told = self._channel.recv(64)
        except OSError:
            told = b""
        self._channel.setblocking(False)
        return int(told or self._guard.pid)  # the guard did not come so far

    def _watch(self) -> None:
        """Wait for the guard's end, and do what a guard that was killed could not do."""
        self._guard.wait()
        while end_marked(lambda marked: marked.get(_MARK) == self._mark, self._pid):
            pass
        self._reader.join(_LAST_WORDS)
        with self._lock:
            self._channel.close()
        self._gone.set()

    def _read(self, source: IO[bytes], log: LogFile) -> None:
        with source:
            while data := os.read(source.fileno(), _PIECE):
                self._lines.add(data)
                log.write(data)
        log.close()


def _guard(arguments: Sequence[str], channel: socket.socket,
           marks: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    environ = {key: value for key, value in os.environ.items() if not key.startswith("LOOP_")}
    with on_every():
        return subprocess.Popen(
            [sys.executable, "-S", "-E", "-m", "app.engines.guard", *arguments],
            cwd=ROOT, env={**environ, **marks}, stdin=channel.fileno(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)


def _thread(name: str, work: Callable[..., None], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, name=f"engine-{name}", daemon=True)
    thread.start()
    return thread


def _resident(pid: int) -> int | None:
    """See /proc/PID/statm in proc(5)."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return None
