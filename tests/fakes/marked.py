"""Processes by what is in their environment, and by the ids that they have written down."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.fakes.processes import running, wait_until


def carrying(text: str) -> list[int]:
    """The living processes of ours that have this text in their environment."""
    return [pid for pid in _all() if text in _environ(pid) and running(pid)]


def end_carrying(text: str) -> list[int]:
    """Kill what is found by `carrying`; returns what that was."""
    return _end(carrying(text))


def zombies_below(parent: int) -> list[int]:
    """The dead children that this process has not asked for."""
    return [pid for pid in _all() if _stat(pid)[:2] == ["Z", str(parent)]]


def written_pids(file: Path, count: int) -> list[int]:
    """The process ids that an engine's processes append to a file; blocks until so many are in."""
    def read() -> list[int]:
        return [int(line) for line in file.read_text("ascii").split()] if file.exists() else []
    wait_until(lambda: len(read()) >= count, f"{count} process ids in {file}")
    return read()


def end_written(file: Path) -> list[int]:
    """Kill those in such a file that still run, and only sleep, as the tests' do; returns which."""
    written = file.read_text("ascii").split() if file.exists() else []
    return _end([pid for pid in map(int, written) if running(pid) and _sleeps(pid)])


def _sleeps(pid: int) -> bool:
    """Whether it is still one of ours: the id of one that has ended may be another's by now."""
    return Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x001000\0"


def _end(pids: list[int]) -> list[int]:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return pids


def _all() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal()]


def _environ(pid: int) -> str:
    try:
        return os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes())
    except OSError:
        return ""


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []
