"""A real `python -m app.launcher.serve` with files, registry and home directory of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.fakes.processes import descendants, running, wait_until
from tests.server.gateway_process import free_port

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


class ServeProcess:
    """The launcher in a session of its own, started on entering the context.

    On leaving, whatever still runs of it is killed.
    """

    def __init__(self, directory: Path, *arguments: str, **environ: str) -> None:
        self.port = free_port()
        self._arguments = arguments
        self._environ = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ},
            "HOME": str(directory), "LOOP_LOOP_HOME": str(directory / "loop"),
            "LOOP_SERVER_PORT": str(self.port), "LOOP_SERVER_THREADS": "8", **environ}
        self._output = directory / "serve.log"
        self._seen: set[int] = set()

    def __enter__(self) -> ServeProcess:
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "app.launcher.serve", *self._arguments], cwd=ROOT,
                env=self._environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True)
        return self

    def __exit__(self, *_: object) -> None:
        for pid in [self.process.pid, *self.family()]:
            if running(pid):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    @property
    def url(self) -> str:
        """Where the gateway listens."""
        return f"http://127.0.0.1:{self.port}"

    def output(self) -> str:
        """All that was printed so far."""
        return self._output.read_text(encoding="utf-8", errors="replace")

    def family(self) -> list[int]:
        """All processes below the launcher, seen now or by an earlier call."""
        if running(self.process.pid):
            self._seen.update(descendants(self.process.pid))
        return sorted(self._seen)

    def wait_until_up(self) -> str:
        """Block until it says that it serves; the line to try it with."""
        wait_until(lambda: "try it:" in self.output() or self.process.poll() is not None,
                   "the line to try it with", PATIENCE)
        found = re.search(r"^curl .+$", self.output(), re.MULTILINE)
        assert found, f"it did not come up:\n{self.output()}"
        self.family()
        return found[0]

    def code(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(PATIENCE)

    def last_line(self) -> str:
        """The last line it printed."""
        return self.output().splitlines()[-1]
