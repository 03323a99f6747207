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
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    children = [int(child) for child in listed]
    return children + [below for child in children for below in descendants(child)]


def command_line(pid: int) -> str:
    """The command line of a running process."""
    return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").replace("\0", " ")


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
