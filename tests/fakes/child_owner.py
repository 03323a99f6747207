"""A process that starts a Python program as its child, watches it, and says how that ended.

    python -m tests.fakes.child_owner LIMIT SECONDS_TO_STOP PROGRAM

With a LIMIT above 0 the child is expected to answer within that many seconds, which it never does.
What it says is the one line on standard output; the child's own output is on standard error.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from app.engines.lifeline import Signals
from app.launcher.child import ENDING, Child, ChildEnded

ROOT = Path(__file__).parents[2]
INTERRUPTED = "interrupted"


def command(program: str, limit: float = 0, seconds_to_stop: float = 20) -> list[str]:
    """What starts an owner of this program, to be run in ROOT."""
    return [sys.executable, "-m", __name__, str(limit), str(seconds_to_stop), program]


def end_of(program: str, limit: float = 0) -> tuple[str, str]:
    """What an owner of this program says in the end, and what the program wrote."""
    done = subprocess.run(command(program, limit), cwd=ROOT, capture_output=True, text=True,
                          timeout=60)
    return done.stdout.removesuffix("\n"), done.stderr


def _main() -> None:
    limit, seconds_to_stop, program = sys.argv[1:]
    signals = Signals(*ENDING, signal.SIGCHLD)
    said = INTERRUPTED
    try:
        with Child("engine", [sys.executable, "-c", program], os.environ, signals,
                   float(seconds_to_stop)) as child:
            child.wait_until(lambda: not float(limit), float(limit))
            child.watch()
    except ChildEnded as problem:
        said = str(problem)
    except KeyboardInterrupt:
        pass
    print(said, flush=True)


if __name__ == "__main__":
    _main()
