"""Engines that outlived their gateway: how they are known, and their end.

Every process of an engine, its guard too, carries marks in its environment (/proc/PID/environ, see
proc(5)). Ended is nothing but what carries them, its descendants, and what is in a session that one
of those began: so a child that has cleared its environment does not get away.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from app.engines.proctable import Process, below, every, lives, look_up, tell

_PREFIX = "LOOP_ENGINE_"
_HOME, _GATEWAY = f"{_PREFIX}HOME", f"{_PREFIX}GATEWAY"
_PATIENCE = 5.0  # s; for processes to be gone after SIGKILL
_FIRST_LOOK, _LAST_LOOK = 0.01, 0.5  # s; pauses between looks for them

Marks = Mapping[str, str]


def marks(home: Path) -> dict[str, str]:
    """What the engines of this process, a gateway with this home, carry in their environment."""
    pid = os.getpid()
    this = look_up(pid)
    return {_HOME: str(home.resolve()), _GATEWAY: f"{pid}-{this.started if this else 0}"}


def end_orphans(home: Path) -> int:
    """End all that engines of gateways with this home, now dead, have left; returns how many.

    They are this user's processes; another living gateway with the same home keeps its own. Blocks
    until they are gone, for at most five seconds.
    """
    known = str(home.resolve())
    return end_marked(lambda marked: marked.get(_HOME) == known
                      and _is_dead(marked.get(_GATEWAY, "")))


def end_marked(wanted: Callable[[Marks], bool], session: int | None = None) -> int:
    """SIGKILL to every process whose marks are `wanted`, and to its kin; returns how many.

    `wanted` gets what begins with LOOP_ENGINE_; `session` is one that is theirs for certain. Blocks
    until none is left, for at most five seconds.
    """
    told: set[tuple[int, int]] = set()
    sessions = set() if session is None else {session}
    deadline = time.monotonic() + _PATIENCE
    pause = _FIRST_LOOK
    while time.monotonic() < deadline:
        found = [each for each in _family(wanted, sessions) if tell(each, signal.SIGKILL)]
        told.update((process.pid, process.started) for process in found)
        # What is dying has no environment any more, and may hold gigabytes for a while.
        if not found and not any(lives(*process) for process in told):
            break
        time.sleep(pause)
        pause = min(2 * pause, _LAST_LOOK)
    return len(told)


def _is_dead(gateway: str) -> bool:
    pid, _, started = gateway.partition("-")
    known = pid.isdecimal() and started.isdecimal()  # or it is no mark of ours
    return known and not lives(int(pid), int(started))


def _family(wanted: Callable[[Marks], bool], sessions: set[int]) -> list[Process]:
    """The living ones that are wanted, and their kin; their own sessions are added to `sessions`.

    The caller keeps those, because the leader of one may be the first to die.
    """
    table = [process for process in every() if not process.dead]
    seeds = [process for process in table if wanted(_marks_of(process.pid))]
    sessions |= _begun_by(seeds, table)
    seeds += [process for process in table if process.session in sessions]
    found = {process.pid: process for process in [*seeds, *below(_pids(seeds), table)]}
    spared = _own_line()
    return [process for pid, process in found.items() if pid not in spared]


def _begun_by(seeds: Iterable[Process], table: Iterable[Process]) -> set[int]:
    """The sessions of `seeds` whose leader is one of them or gone, and which are not our own."""
    strangers = _pids(table) - _pids(seeds)
    from_outside = 0  # the container was entered with it, so its leader cannot be seen
    return {process.session for process in seeds} - strangers - {from_outside, os.getsid(0)}


def _pids(processes: Iterable[Process]) -> set[int]:
    return {process.pid for process in processes}


def _own_line() -> set[int]:
    """This process and those it descends from."""
    line: set[int] = set()
    process = look_up(os.getpid())
    while process and process.pid not in line:
        line.add(process.pid)
        process = look_up(process.parent)
    return line


def _marks_of(pid: int) -> Marks:
    """Those it was started with; none if it is another user's, or in another container."""
    folder = f"/proc/{pid}"
    try:
        if os.stat(folder).st_uid != os.geteuid() or _pid_namespace(pid) != _pid_namespace("self"):
            return {}
        with open(f"{folder}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:  # it has ended
        return {}
    marked = (os.fsdecode(entry) for entry in entries if entry.startswith(_PREFIX.encode()))
    return dict(entry.partition("=")[::2] for entry in marked)


def _pid_namespace(pid: int | str) -> str:
    """A process id means another process in another namespace: pid_namespaces(7)."""
    return os.readlink(f"/proc/{pid}/ns/pid")
