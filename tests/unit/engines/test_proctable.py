"""The process table: who is whose child, and signals to the right process only."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from app.engines import proctable
from app.engines.proctable import Process, below, every, look_up, tell
from tests.fakes.processes import wait_until

FIELDS = b" S 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A child that sleeps."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("name", [b"sh", b"a b", b"a) S 1 1 (b", b"", b"\xff"])
def test_a_name_may_be_anything(name: bytes) -> None:
    """The name of a program does not change what is read behind it."""
    process = Process(5, b"5 (" + name + b")" + FIELDS)
    assert (process.pid, process.parent, process.group, process.session, process.started,
            process.dead) == (5, 7, 8, 9, 4711, False)


def test_children_are_found(sleeper: subprocess.Popen[bytes]) -> None:
    """A child is below its parent, with the ids the system gives it; the parent itself is not."""
    table = every()
    found = {process.pid: process for process in below([os.getpid()], table)}
    child = found[sleeper.pid]
    assert (child.parent, child.session) == (os.getpid(), os.getsid(sleeper.pid))
    assert os.getpid() not in found
    assert sleeper.pid in {process.pid for process in below([os.getppid()], table)}
    assert below([sleeper.pid], table) == []


def test_a_circle_has_an_end() -> None:
    """A table that was read while ids changed hands may hold one."""
    circle = [Process(7, b"7 (a)" + FIELDS.replace(b"7", b"8", 1)), Process(8, b"8 (b)" + FIELDS)]
    assert [process.pid for process in below([7], circle)] == [8]


def test_the_dead_are_marked(sleeper: subprocess.Popen[bytes]) -> None:
    """A zombie is still there, and told nothing more once its parent has asked."""
    sleeper.send_signal(signal.SIGKILL)
    wait_until(lambda: getattr(look_up(sleeper.pid), "dead", False), "its death")
    process = look_up(sleeper.pid)
    assert process
    sleeper.wait()
    assert look_up(sleeper.pid) is None
    assert not tell(process, signal.SIGTERM)


@pytest.mark.parametrize("handles", [True, False])
def test_another_process_with_its_id_is_told_nothing(
        sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, handles: bool) -> None:
    """The time of the start tells them apart, with process descriptors or without."""
    if not handles:
        monkeypatch.delattr(os, "pidfd_open")
    process = proctable.look_up(sleeper.pid)
    assert process
    process.started -= 1
    assert not tell(process, signal.SIGKILL)
    assert sleeper.poll() is None
    process.started += 1
    assert tell(process, signal.SIGKILL)
    assert sleeper.wait(10) == -signal.SIGKILL
