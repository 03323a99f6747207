"""The built-in engine as a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fakes.processes import wait_until

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


class EngineProcess:
    """`python -m app.engines.builtin` with these arguments, started on entering the context."""

    def __init__(self, *arguments: str) -> None:
        self.command = [sys.executable, "-m", "app.engines.builtin", *arguments]
        self.url = ""

    def __enter__(self) -> EngineProcess:
        self._output = tempfile.TemporaryFile("w+b")
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, stdin=subprocess.DEVNULL,
            stdout=self._output, stderr=self._output)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._output.close()

    def output(self) -> str:
        """All that it wrote so far."""
        self._output.seek(0)
        return self._output.read().decode("utf-8", "replace")

    def wait_for(self, text: str) -> None:
        """Block until it has written `text`."""
        wait_until(lambda: text in self.output() or self.process.poll() is not None, text, PATIENCE)
        assert text in self.output(), self.output()

    def wait_until_up(self) -> None:
        """Block until it says where it serves; its `url` is known then."""
        self.wait_for(" is served at http://")
        found = re.search(r" is served at (http://\S+)\n", self.output())
        assert found
        self.url = found[1]

    def code(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(PATIENCE)
