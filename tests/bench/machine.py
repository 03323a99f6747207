"""The machine that measures: what it is, and how busy others keep it."""

from __future__ import annotations

import os
import platform
import resource
import time
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def description() -> str:
    """Processors and kernel, on one line."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    models = [line.partition(": ")[2] for line in text.splitlines() if "model name" in line]
    return (f"machine: {os.cpu_count()} × {models[0] if models else platform.machine()}, "
            f"Linux {platform.release()}")


def open_files() -> None:
    """Let this process, and all it starts, have as many descriptors as it may: a stream is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Others:
    """How much processor time the processes use that are not ours, from here on."""

    def __init__(self) -> None:
        self._used, self._begin = _foreign_seconds(), time.monotonic()

    def share(self) -> float:
        """The part of all processors' time; ours that have not ended yet count as others."""
        available = (time.monotonic() - self._begin) * (os.cpu_count() or 1)
        return (_foreign_seconds() - self._used) / available


def _foreign_seconds() -> float:
    """Busy time of the machine (see proc_stat(5): user, nice, system, irq, softirq), less ours."""
    first = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0]
    fields = [int(field) for field in first.split()[1:]]
    ours = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    busy = sum(fields[:3]) + sum(fields[5:7])
    return busy / _TICK - sum(each.ru_utime + each.ru_stime for each in ours)
