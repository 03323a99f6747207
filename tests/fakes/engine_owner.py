"""A process that stands in for a gateway: it starts one engine, says so, and then only waits.

    python -m tests.fakes.engine_owner HOME SECONDS COMMAND…

It writes the ids of guard and engine in one line.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from app.engines.orphans import marks
from app.engines.process import EngineProcess

ROOT = Path(__file__).parents[2]


class Owner:
    """The process and what it has started; leaving the context kills it."""

    def __init__(self, home: Path, seconds: float, command: list[str]) -> None:
        """Blocks until the engine's process is there."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(home), str(seconds), *command],
            cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.guard, self.engine = map(int, self.process.stdout.readline().split())

    def __enter__(self) -> "Owner":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.kill()
        assert self.process.stdout
        self.process.stdout.close()

    def kill(self) -> None:
        """SIGKILL, as from a user or the kernel; blocks until it is gone."""
        self.process.kill()
        self.process.wait()


def _main() -> None:
    home, seconds, *command = sys.argv[1:]
    engine = EngineProcess(command, Path(home, "engine.log"), float(seconds), marks(Path(home)))
    parent = Path(f"/proc/{engine.pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1]
    print(parent, engine.pid, flush=True)
    signal.pause()


if __name__ == "__main__":
    _main()
