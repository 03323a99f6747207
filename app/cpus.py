"""On which CPUs threads run: the worker's on one, as the interpreter lets only one of them run.

Where they may run on several, each time one waits for a client or an engine the next goes on
elsewhere, with cold caches, and the one that comes back interrupts it. Kept to one CPU, a plain
request costs 0.67 of what it did with 16 at a time, an event of 1,000 streams 0.54.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_every: set[int] = set()  # what this process could run on before it kept to one


def keep_to_one() -> None:
    """Let this thread, and all that it starts from now on, run on one CPU: a fast one.

    Nothing happens where the system has no such thing, or does not allow it.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    every = os.sched_getaffinity(0)
    with suppress(OSError):
        os.sched_setaffinity(0, {_chosen(every)})
        _every.update(every)


def _chosen(cpus: set[int]) -> int:
    speeds = {cpu: _speed(cpu) for cpu in cpus}
    fastest = [cpu for cpu in sorted(cpus) if speeds[cpu] == max(speeds.values())]
    here = _current()
    return here if here in fastest else fastest[0]


@contextmanager
def on_every() -> Iterator[None]:
    """Within it this thread may run on every CPU it could, and so may processes that it starts."""
    if not _every:
        yield
        return
    one = os.sched_getaffinity(0)
    os.sched_setaffinity(0, _every)
    try:
        yield
    finally:
        os.sched_setaffinity(0, one)


def _current() -> int:
    """The CPU this thread runs on; the scheduler has chosen one with little else to do.

    See /proc/PID/stat in proc(5), field 39.
    """
    with open("/proc/thread-self/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[36])


def _speed(cpu: int) -> int:
    """Its highest frequency in kHz; 0 for all where the kernel does not tell.

    Of some processors half the cores are slow ones.
    """
    try:
        with open(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq", "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0
