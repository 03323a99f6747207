"""The guard ends as its engine did, stops it when told to, and leaves nothing behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.marked import end_written, written_pids, zombies_below
from tests.fakes.processes import running, wait_until, wait_until_gone

ROOT = Path(__file__).parents[3]
Guard = subprocess.Popen[bytes]
Start = Callable[..., Guard]
# A daemon as they are made: a child of a child that has ended, in a session of its own.
DAEMON = "sh -c 'setsid sh -c \"echo \\$\\$ >> pids; exec sleep 1000\" & exit'; "
OF_GLIBC = 0b11 << 31  # the signals 32 and 33, which its posix_spawn ignores in what it starts


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a command below a guard, in the test's own directory."""
    started: list[Guard] = []

    def start(*command: str, seconds: float = 5) -> Guard:
        started.append(subprocess.Popen(
            [sys.executable, "-S", "-E", "-m", "app.engines.guard", str(seconds), str(tmp_path),
             *command], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        with process:
            pass
    assert not end_written(tmp_path / "pids")


def written(process: Guard) -> bytes:
    """All that it and its engine write; blocks until both have ended."""
    assert process.stdout
    return process.stdout.read()


def tell(process: Guard, word: bytes) -> None:
    """Write to its standard input; b"" closes it."""
    assert process.stdin
    if word:
        process.stdin.write(word)
        process.stdin.flush()
    else:
        process.stdin.close()


@pytest.mark.parametrize(("script", "code"), [
    ("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", -15), ("kill -9 $$", -9),
    ("kill -INT $$", -2), ("kill -USR1 $$", -10)])
def test_it_ends_as_its_engine(guard: Start, script: str, code: int) -> None:
    """With the same exit code, or by the same signal."""
    assert guard("sh", "-c", script).wait(10) == code


def test_it_leaves_no_core_file(guard: Start) -> None:
    """A crash of the engine is passed on without one of its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        process = guard("sh", "-c", "ulimit -c 0; kill -SEGV $$")
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    _, status = os.waitpid(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == -signal.SIGSEGV
    assert not os.WCOREDUMP(status)


def test_what_is_no_program_is_told(guard: Start, tmp_path: Path) -> None:
    """The exit codes are the shell's; the sentence holds nothing of the command."""
    (tmp_path / "text").write_text("echo", encoding="ascii")
    (tmp_path / "noise").write_text("\0\1", encoding="ascii")
    (tmp_path / "noise").chmod(0o700)
    told = []
    for name in ("./none", "no-such-program", "./text/none", "./text", ".", "./noise"):
        process = guard(name, "--secret")
        told.append((written(process).decode(), process.wait(10)))
    sentence = "the engine's command cannot be executed: "
    assert told == [
        (f"{sentence}No such file or directory\n", 127),
        (f"{sentence}No such file or directory\n", 127),
        (f"{sentence}Not a directory\n", 127),
        (f"{sentence}Permission denied\n", 126),
        (f"{sentence}Permission denied\n", 126),
        (f"{sentence}Exec format error\n", 126)]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_it_is_a_stop(guard: Start, tmp_path: Path, signum: signal.Signals) -> None:
    """The guard stays until the engine has ended, which gets SIGTERM."""
    process = guard("sh", "-c", "trap 'echo asked; exit 7' TERM; echo $$ > pids; "
                                "while :; do sleep 0.01; done", seconds=20)
    written_pids(tmp_path / "pids", 1)
    process.send_signal(signum)
    assert (written(process).splitlines()[-1], process.wait(10)) == (b"asked", 7)


@pytest.mark.parametrize(("word", "seconds"), [(b"s", 0.3), (b"", 0.3), (b"k", 60), (b"s", 0)])
def test_a_stubborn_engine_is_killed(guard: Start, tmp_path: Path, word: bytes,
                                     seconds: float) -> None:
    """What ignores SIGTERM gets SIGKILL after its time, and at once if so told."""
    process = guard("sh", "-c", "trap '' TERM; (echo $$ >> pids; exec sleep 1000) & "
                                "echo $! >> pids; wait", seconds=seconds)
    family = [process.pid, *written_pids(tmp_path / "pids", 2)]
    tell(process, word)
    assert process.wait(10) == -signal.SIGKILL
    assert not any(running(pid) for pid in family)


def test_the_end_of_the_gateway_leaves_two_seconds(guard: Start, tmp_path: Path) -> None:
    """However long the engine would be given otherwise."""
    process = guard("sh", "-c", "trap '' TERM; echo $$ > pids; exec sleep 1000", seconds=600)
    pids = written_pids(tmp_path / "pids", 1)
    tell(process, b"s")
    tell(process, b"")
    assert process.wait(20) == -signal.SIGKILL
    assert not any(running(pid) for pid in pids)


def test_everyone_is_asked_once(guard: Start, tmp_path: Path) -> None:
    """Also who left the engine's session: a second SIGTERM would mean haste to some."""
    trap = "trap \"echo asked\" TERM; sleep 1000 & echo $$ >> pids; wait; sleep 0.2"
    process = guard("sh", "-c", f"setsid sh -c '{trap}' & sh -c '{trap}' & trap 'wait' TERM; wait")
    written_pids(tmp_path / "pids", 2)
    tell(process, b"s")
    assert written(process).count(b"asked") == 2


def test_a_wrapper_that_ends_first_costs_no_time(guard: Start, tmp_path: Path) -> None:
    """Its child has all of the time to stop in."""
    child = "trap \"sleep 2.3; echo done; exit\" TERM; echo $$ > pids; while :; do sleep 0.1; done"
    process = guard("sh", "-c", f"sh -c '{child}' & wait", seconds=20)
    written_pids(tmp_path / "pids", 1)
    tell(process, b"s")
    assert (written(process).splitlines()[-1], process.wait(10)) == (b"done", -signal.SIGTERM)


@pytest.mark.parametrize("rest", ["exec sleep 1000", "exit 4"], ids=["stopped", "ends"])
def test_a_daemon_does_not_get_away(guard: Start, tmp_path: Path, rest: str) -> None:
    """Neither when the engine is stopped nor when it ends by itself."""
    process = guard("sh", "-c", f"{DAEMON} while ! [ -s pids ]; do sleep 0.01; done; {rest}")
    daemon = written_pids(tmp_path / "pids", 1)
    if rest != "exit 4":
        assert running(daemon[0])
        tell(process, b"s")
    assert process.wait(10) == (4 if rest == "exit 4" else -signal.SIGTERM)
    assert not running(daemon[0])


def test_the_dead_are_buried(guard: Start, tmp_path: Path) -> None:
    """Orphans of the engine that end while it runs do not stay as zombies."""
    process = guard("sh", "-c", "for i in 1 2 3; do sh -c 'sh -c \"echo \\$\\$ >> pids\" & exit'; "
                                "done; exec sleep 1000")
    pids = written_pids(tmp_path / "pids", 3)
    wait_until_gone(pids)
    wait_until(lambda: not zombies_below(process.pid), "the burial")


def test_the_engine_goes_with_a_killed_guard(guard: Start, tmp_path: Path) -> None:
    """Not even SIGKILL to the guard leaves the engine running."""
    process = guard("sh", "-c", "echo $$ > pids; exec sleep 1000")
    pids = written_pids(tmp_path / "pids", 1)
    process.kill()
    wait_until_gone(pids)


def test_what_the_engine_is_started_with(guard: Start, tmp_path: Path) -> None:
    """No input, its own session, the directory, and no descriptor of ours."""
    process = guard(sys.executable, "-c", (
        "import os\n"
        "print(os.getsid(0) == os.getpgid(0) == os.getpid(), os.read(0, 1), os.getcwd())\n"
        "print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"))
    assert written(process).decode() == f"True b'' {tmp_path}\n[0, 1, 2]\n"


def test_no_signal_is_blocked_or_ignored(guard: Start) -> None:
    """In the engine; the guard itself, as any Python, ignores SIGPIPE."""
    told = written(guard("grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")).split()
    assert told[::2] == [b"SigBlk:", b"SigIgn:"]
    assert {int(mask, 16) & ~OF_GLIBC for mask in told[1::2]} == {0}
