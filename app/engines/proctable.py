"""The processes of this machine, from /proc as proc(5) describes it; where there is none, none.

Imports next to nothing, because the guard of every engine needs it (`app/engines/guard.py`).
"""

import os
import signal
from collections.abc import Iterable


class Process:
    """One process as it was when it was looked at.

    `started`, in clock ticks since the machine's start, tells it from a later one with its `pid`.
    """

    __slots__ = ("pid", "parent", "group", "session", "started", "dead")

    def __init__(self, pid: int, stat: bytes) -> None:
        """`stat` is the content of /proc/PID/stat; the name in it may hold spaces and brackets."""
        fields = stat.rpartition(b")")[2].split()
        self.pid = pid
        self.parent, self.group, self.session = int(fields[1]), int(fields[2]), int(fields[3])
        self.started = int(fields[19])
        self.dead = fields[0] in b"ZX"  # a zombie, which only waits for its parent to ask


def look_up(pid: int) -> Process | None:
    """The process that has this id now, a zombie too."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return Process(pid, file.read())
    except (OSError, IndexError):  # it ended before or while it was read
        return None


def lives(pid: int, started: int) -> bool:
    """Whether the process that has this id and began then is still there, and no zombie."""
    now = look_up(pid)
    return now is not None and now.started == started and not now.dead


def every() -> list[Process]:
    """All processes, zombies too; who starts or ends meanwhile may be missing."""
    try:
        names = os.listdir("/proc")
    except FileNotFoundError:
        return []
    found = (look_up(int(name)) for name in names if name.isdecimal())
    return [process for process in found if process]


def below(pids: Iterable[int], among: Iterable[Process]) -> list[Process]:
    """Those of `among` that descend from one of `pids`, parents first; without `pids`."""
    children: dict[int, list[Process]] = {}
    for process in among:
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    parents = list(pids)
    seen = set(parents)
    while parents:
        for process in children.get(parents.pop(), ()):
            if process.pid not in seen:
                seen.add(process.pid)
                found.append(process)
                parents.append(process.pid)
    return found


def tell(process: Process, signum: int) -> bool:
    """Send a signal to this process and to no later one with its id.

    False where it has ended, or is not ours to tell.
    """
    handle = _handle(process.pid)
    try:
        if not lives(process.pid, process.started):
            return False
        if handle is None:
            os.kill(process.pid, signum)
        else:
            signal.pidfd_send_signal(handle, signum)
        return True
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        if handle is not None:
            os.close(handle)


def _handle(pid: int) -> int | None:
    """A descriptor that stays this process's, pidfd_open(2); None where there are none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # a kernel before 5.3, or a container that forbids it
        return None
