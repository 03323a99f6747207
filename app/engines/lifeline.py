"""How a process learns that it must end: signals, and the death of the process that started it."""

import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from app.engines.prctl import end_with_parent

ROOT = Path(__file__).resolve().parents[2]  # where this module can be run from by its name


def tied(command: Sequence[str]) -> list[str]:
    """`command` as one that gets SIGTERM when this process dies; to be run in ROOT.

    A step before it, in place of a preexec_fn, which is unsafe in a process with threads.
    """
    return [sys.executable, "-m", __name__, str(os.getpid()), *command]


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
