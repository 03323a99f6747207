"""How a process learns that it must end: signals, and the death of the process that started it."""

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]  # where this module can be run from by its name
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def tied(command: Sequence[str]) -> list[str]:
    """`command` as one that gets SIGTERM when this process dies; to be run in ROOT.

    A step before it, in place of a preexec_fn, which is unsafe in a process with threads.
    """
    return [sys.executable, "-m", __name__, str(os.getpid()), *command]


def end_with_parent(signum: int, parent: int) -> None:
    """Have the kernel send this process `signum` when `parent`, which started it, dies.

    The setting outlives exec, but not a fork. If `parent` is dead already the signal is sent at
    once. See prctl(2): the kernel means the *thread* that started the process, so the signal may
    come while the parent lives. On systems other than Linux there is only the first look.
    """
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl:
        prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signum)


class Signals:
    """Signals as events to wait for; from its making on they no longer interrupt anything.

    To be made in the main thread, once; it is never closed. The C part of Python's signal handling
    writes to a socket, so a signal wakes the waiting thread whichever thread the kernel gave it to.
    """

    def __init__(self, *signums: int) -> None:
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        for signum in signums:
            signal.signal(signum, _noted)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def wait(self, seconds: float) -> int | None:
        """The next signal, in the order they came; None when none came within `seconds`."""
        self._reader.settimeout(seconds)
        try:
            return self._reader.recv(1)[0]
        except (TimeoutError, BlockingIOError):
            return None


def _noted(_signum: int, _frame: FrameType | None) -> None:
    """The wake-up socket has it already."""


if __name__ == "__main__":
    end_with_parent(signal.SIGTERM, int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
