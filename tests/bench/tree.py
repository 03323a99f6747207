"""What a process and all processes below it have used."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from tests.fakes.processes import descendants

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")
_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")
_SCHEDULED = 2  # CPUCLOCK_SCHED, see _clock


def cpu_seconds(pid: int) -> float:
    """User and system time of the tree so far, children that have ended included.

    That of running processes is exact to the nanosecond: a tick of /proc, 10 ms, is a tenth of what
    nginx uses for the streams of one measurement.
    """
    return sum(time.clock_gettime(_clock(each)) + _of_ended_children(each) for each in _tree(pid))


def memory_bytes(pid: int) -> int:
    """Resident memory of the tree; pages that two processes share count twice."""
    return sum(int(_read(each, "statm").split()[1]) * _PAGE for each in _tree(pid))


def peak_memory_bytes(pid: int) -> int:
    """The most that each process has had resident since `forget_peak`, added up."""
    return sum(int(_PEAK.findall(_read(each, "status"))[0]) * 1024 for each in _tree(pid))


def forget_peak(pid: int) -> None:
    """Let `peak_memory_bytes` begin anew (proc_pid_clear_refs(5))."""
    for each in _tree(pid):
        Path(f"/proc/{each}/clear_refs").write_text("5", encoding="ascii")


def _tree(pid: int) -> list[int]:
    return [pid, *descendants(pid)]


def _clock(pid: int) -> int:
    """The clock of a process's CPU time, as clock_getcpuclockid(3) makes it on Linux."""
    return ~pid << 3 | _SCHEDULED


def _of_ended_children(pid: int) -> float:
    """Fields 16 and 17 of /proc/PID/stat, see proc_pid_stat(5)."""
    after_name = _read(pid, "stat").rpartition(")")[2].split()
    return (int(after_name[13]) + int(after_name[14])) / _TICK


def _read(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8", errors="replace")
