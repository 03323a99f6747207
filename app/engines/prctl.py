"""What a process settles with Linux about itself and its kin: prctl(2). Elsewhere nothing.

Imports next to nothing, because the guard of every engine needs it (`app/engines/guard.py`).
"""

import ctypes
import os

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36  # linux/prctl.h


def end_with_parent(signum: int, parent: int) -> None:
    """Have the kernel send this process `signum` when `parent`, which started it, dies.

    The setting outlives exec, but not a fork. If `parent` is dead already the signal is sent at
    once. See prctl(2): the kernel means the *thread* that started the process, so the signal may
    come while the parent lives. On systems other than Linux there is only the first look.
    """
    _prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os.kill(os.getpid(), signum)


def adopt_orphans() -> None:
    """From now on every descendant whose parent dies becomes a child of this process."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def leave_no_core() -> None:
    """This process's death by a signal writes no core file, wherever the system pipes them to."""
    _prctl(_PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    call = getattr(ctypes.CDLL(None), "prctl", None)
    if call:
        call(option, value, 0, 0, 0)
