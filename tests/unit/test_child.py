"""A child process is heard out when it ends, and gone with all it started when it is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fakes.child_owner import INTERRUPTED, ROOT, command, end_of
from tests.fakes.processes import descendants, running, wait_until

# Ignores SIGTERM; so does what it starts in a session of its own.
STUBBORN = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    print("ready", flush=True)
signal.pause()
"""
# Ends at SIGTERM; what it has started notices and then has something to do.
LINGERING = """
import os, signal, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    os.close(writer)
    print("ready", flush=True)
    os.closerange(1, 3)
    os.read(reader, 1)
    time.sleep(0.3)
    open("@file", "w").close()
    os._exit(0)
signal.pause()
"""
# Leaves one behind that ends at once.
ORPHAN = """
import os, signal
if os.fork() == 0:
    if os.fork() == 0:
        print(os.getpid(), flush=True)
    os._exit(0)
signal.pause()
"""

Own = Callable[[list[str]], "subprocess.Popen[str]"]
Family = Callable[["subprocess.Popen[str]"], list[int]]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Own]:
    """A function that starts an owner; whatever is left of it when the test ends is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(arguments: list[str]) -> subprocess.Popen[str]:
        with (tmp_path / "written").open("wb") as written:
            started.append(subprocess.Popen(
                arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=written, text=True))
        return started[-1]

    yield start
    for owner in started:
        for pid in descendants(owner.pid) if running(owner.pid) else []:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        owner.kill()
        owner.communicate()


@pytest.fixture
def family(tmp_path: Path) -> Family:
    """A function that gives the two processes below an owner, once the second one is there."""
    def below(owner: subprocess.Popen[str]) -> list[int]:
        wait_until((tmp_path / "written").read_text, "the second process")
        found = [pid for pid in descendants(owner.pid) if running(pid)]
        assert len(found) == 2
        return found

    return below


def end(owner: subprocess.Popen[str]) -> str:
    """What the owner says once it has ended."""
    return owner.communicate(timeout=30)[0].removesuffix("\n")


@pytest.mark.parametrize("program,said", [
    ("print('one\\ntwo\\n\\n'); exit(3)", "the engine ended with exit code 3: two"),
    ("exit(0)", "the engine ended with exit code 0"),
    ("exit('no room')", "the engine ended with exit code 1: no room"),
    ("import os; os.kill(os.getpid(), 9)", "the engine was ended by SIGKILL"),
    ("import os; os.write(1, b'\\xff\\n')", "the engine ended with exit code 0: \ufffd"),
])
def test_its_end_is_told(program: str, said: str) -> None:
    """How it ended and its last line are one sentence."""
    assert end_of(program)[0] == said


def test_what_it_writes_is_passed_on() -> None:
    """All its output is on this process's standard error, as it is."""
    written = end_of("import sys; print('out'); print('  error', file=sys.stderr)")[1]
    assert sorted(written.splitlines()) == ["  error", "out"]


def test_a_child_that_does_not_answer_is_told_and_stopped() -> None:
    """After the limit it is over."""
    said, _ = end_of("import signal; signal.pause()", limit=0.3)
    assert said == "the engine did not answer within 0.3 s"


def test_what_is_stubborn_is_killed(own: Own, family: Family) -> None:
    """What ignores SIGTERM is killed after the limit, in whatever session it is."""
    owner = own(command(STUBBORN, seconds_to_stop=0.3))
    left = family(owner)
    owner.send_signal(signal.SIGINT)
    assert end(owner) == INTERRUPTED
    assert not [pid for pid in left if running(pid)]


def test_a_second_signal_does_not_wait(own: Own, family: Family) -> None:
    """It kills at once what the first one has not ended."""
    owner = own(command(STUBBORN, seconds_to_stop=1000))
    left = family(owner)
    owner.send_signal(signal.SIGINT)
    owner.send_signal(signal.SIGTERM)
    assert end(owner) == INTERRUPTED
    assert not [pid for pid in left if running(pid)]


def test_what_outlives_the_child_gets_its_time(
        own: Own, family: Family, tmp_path: Path) -> None:
    """What is about to end by itself is waited for."""
    done = tmp_path / "done"
    owner = own(command(LINGERING.replace("@file", str(done))))
    left = family(owner)
    owner.send_signal(signal.SIGINT)
    assert end(owner) == INTERRUPTED
    assert not [pid for pid in left if running(pid)]
    assert done.exists()


def test_orphans_that_end_are_collected(own: Own, tmp_path: Path) -> None:
    """While the child runs, none of what it has left behind stays as a zombie."""
    owner = own(command(ORPHAN))
    written = tmp_path / "written"
    wait_until(written.read_text, "the orphan")
    orphan = Path("/proc", written.read_text().strip())
    wait_until(lambda: not orphan.exists(), "the end of the zombie")
    assert owner.poll() is None


def test_programs_of_the_shell_before_are_left_alone(
        own: Own, family: Family, tmp_path: Path) -> None:
    """What a shell had started before it became this process is no child of ours."""
    pid_file = tmp_path / "pid"
    script = f'sleep 1000 >&2 & echo $! >{pid_file}; exec "$@"'
    program = "import signal; print('up', flush=True); signal.pause()"
    owner = own(["sh", "-c", script, "sh", *command(program)])
    left = family(owner)
    stranger = int(pid_file.read_text())
    try:
        owner.send_signal(signal.SIGTERM)
        assert end(owner) == INTERRUPTED
        assert [pid for pid in left if running(pid)] == [stranger]
    finally:
        os.kill(stranger, signal.SIGKILL)
