"""A piece of work that is killed, as by kill -9, before each of its steps on the file system.

    python -m tests.fakes.deaths MODULE:FUNCTION FOLDER

runs FUNCTION(FOLDER/0), FUNCTION(FOLDER/1) … each in a process of its own that dies before step 0,
step 1 … until one of them comes to its end, and prints how many died. FUNCTION(FOLDER/whole) comes
first, undisturbed. Where there is a directory FOLDER/before, each of these is a copy of it.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

OPEN = os.open
ROOT = Path(__file__).resolve().parents[2]
# All that change what the next process finds; opening a file does where it makes it.
STEPS = ("open", "write", "ftruncate", "replace", "link", "symlink", "unlink", "mkdir", "rmdir")


def die_before(step: int) -> None:
    """From now on, have this process die before it makes its nth step."""
    left = step

    def dying(made: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= made is not OPEN or bool(arguments[1] & os.O_CREAT)
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return made(*arguments, **options)
        return wrapped

    accessor = getattr(pathlib, "_NormalAccessor", None)  # Python 3.10 keeps its own references
    for name in STEPS:
        step_of_os = dying(getattr(os, name))
        setattr(os, name, step_of_os)
        if name in ("unlink", "mkdir", "rmdir") and accessor:
            setattr(accessor, name, staticmethod(step_of_os))


def deaths(work: Callable[[Path], None], folder: Path, **environ: str) -> list[Path]:
    """The directories that the killed processes left, in the order of their last step."""
    name = f"{work.__module__}:{work.__name__}"
    done = subprocess.run(
        [sys.executable, "-m", "tests.fakes.deaths", name, str(folder)], cwd=ROOT, timeout=120,
        env={**os.environ, **environ}, stdout=subprocess.PIPE, text=True, check=True)
    return [folder / str(step) for step in range(int(done.stdout))]


def _run(work: Callable[[Path], None], folder: Path) -> int:
    work(_prepared(folder, "whole"))  # so that nothing is imported in each process again
    for step in count():
        home = _prepared(folder, str(step))
        process = os.fork()
        if not process:
            die_before(step)
            work(home)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        if not os.WIFSIGNALED(status):
            assert os.WEXITSTATUS(status) == 0, "it failed instead of being killed"
            return step
    raise AssertionError


def _prepared(folder: Path, name: str) -> Path:
    if (folder / "before").is_dir():
        shutil.copytree(folder / "before", folder / name, symlinks=True)
    return folder / name


if __name__ == "__main__":
    module, _, function = sys.argv[1].partition(":")
    print(_run(getattr(importlib.import_module(module), function), Path(sys.argv[2])))
