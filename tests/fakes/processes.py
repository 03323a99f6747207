"""Processes seen from outside: which ones belong together, and whether they are gone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

PATIENCE = 30.0


def running(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def descendants(pid: int) -> list[int]:
    """The process ids of its children, their children, and so on."""
    children = _children(pid)
    return children + [below for child in children for below in descendants(child)]


def with_variable(name: str, value: str) -> list[int]:
    """The running processes that were started with this environment variable."""
    wanted = f"{name}={value}".encode()
    found = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in found if wanted in _environment(pid) and running(pid)]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []


def zombies(parents: Iterable[int]) -> list[int]:
    """The ended processes that one of these parents has not collected."""
    return [child for pid in parents if running(pid) for child in _children(pid)
            if not running(child)]


def _children(pid: int) -> list[int]:
    # Each thread has a list of its own: of those that it started.
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in listed for child in _text(path).split()]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it ended meanwhile


def command_line(pid: int) -> str:
    """The command line of a process; "" when it has ended."""
    return _text(Path(f"/proc/{pid}/cmdline")).replace("\0", " ")


def wait_until(reached: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Block until `reached` gives something true; raises AssertionError with `what` otherwise."""
    deadline = time.monotonic() + patience
    while not reached():
        assert time.monotonic() < deadline, f"in vain waited for: {what}"
        time.sleep(0.02)


def wait_until_gone(pids: Iterable[int]) -> None:
    """Block until none of the processes runs; one that stays is killed and an AssertionError."""
    for pid in pids:
        try:
            wait_until(lambda pid=pid: not running(pid), f"the end of process {pid}")
        except AssertionError:
            os.kill(pid, signal.SIGKILL)
            raise
