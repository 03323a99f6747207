"""A child process is heard out when it ends and gone when it is stopped."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from app.launcher.child import Child
from tests.fakes.processes import descendants, running, wait_until, wait_until_gone

# Ignores SIGTERM, as does the child of its own that it starts.
STUBBORN = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork():
    print("ready", flush=True)
signal.pause()
"""


class Signals:
    """Stands in for signals of which none comes."""

    def wait(self, seconds: float) -> None:
        """Let the time pass."""
        threading.Event().wait(seconds)


def child(program: str, log: Path | None = None) -> Child:
    """A child that runs this Python program."""
    return Child("engine", [sys.executable, "-c", program], os.environ, log)


def end_of(process: Child) -> str:
    """The sentence on how it ended; blocks until then."""
    wait_until(process.ended, "the end")
    return str(process.ended())


@pytest.mark.parametrize("program,said", [
    ("print('one\\ntwo\\n\\n'); exit(3)", "the engine ended with exit code 3: two"),
    ("exit(0)", "the engine ended with exit code 0"),
    ("exit('no room')", "the engine ended with exit code 1: no room"),
    ("import os; os.kill(os.getpid(), 9)", "the engine was ended by SIGKILL"),
    ("import os; os.write(1, b'\\xff\\n')", "the engine ended with exit code 0: \ufffd"),
])
def test_its_end_is_told(tmp_path: Path, program: str, said: str) -> None:
    """How it ended and its last line are one sentence, with or without a log."""
    log = tmp_path / "engine.log"
    assert end_of(child(program)) == said
    assert end_of(child(program, log)) == f"{said} (its log: {log})"


def test_a_running_child_has_not_ended(tmp_path: Path) -> None:
    """There is no sentence while it runs; stopped, it is one that SIGTERM ended."""
    process = child("import signal; print('up', flush=True); signal.pause()", tmp_path / "log")
    wait_until(process.last_lines, "its first line")
    assert process.ended() is None
    process.stop(Signals(), 20)  # type: ignore[arg-type]
    assert str(process.ended()).startswith("the engine was ended by SIGTERM: up")


def test_what_it_writes_is_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    """Without a log its output is this process's standard error, as it is."""
    end_of(child("import sys; print('out'); print('  error', file=sys.stderr)"))
    assert sorted(capfd.readouterr().err.splitlines()) == ["  error", "out"]


def test_a_stubborn_child_is_killed_with_its_own(tmp_path: Path) -> None:
    """What ignores SIGTERM is killed after the limit, and so is what it has started."""
    process = child(STUBBORN, tmp_path / "log")
    wait_until(process.last_lines, "its first line")
    family = [process.pid, *descendants(process.pid)]
    assert len(family) == 2
    process.stop(Signals(), 0.3)  # type: ignore[arg-type]
    assert not running(process.pid)
    wait_until_gone(family)
