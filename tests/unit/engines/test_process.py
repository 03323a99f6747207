"""An engine's processes as the gateway has them: started, heard, stopped, and gone for certain."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from app.engines.logfile import LogFile
from app.engines.process import EngineProcess
from tests.fakes.marked import carrying, written_pids, zombies_below
from tests.fakes.processes import running, wait_until, wait_until_gone
from tests.unit.engines.conftest import Start

STUBBORN = "trap '' TERM; (echo $$ >> pids; exec sleep 1000) & echo $! >> pids; wait"


@pytest.fixture(autouse=True)
def directory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway's own directory is the test's."""
    monkeypatch.chdir(home)


@pytest.mark.parametrize(("script", "how", "line"), [
    ("echo one; printf 'two\\n\\n'; exit 3", "ended with exit code 3", "two"),
    ("exit 0", "ended with exit code 0", ""),
    ("printf 'no room' >&2; exit 1", "ended with exit code 1", "no room"),
    ("echo up; kill -9 $$", "was ended by SIGKILL", "up"),
    ("exec ./none", "ended with exit code 127", "sh: 1: exec: ./none: not found"),
])
def test_its_end_and_its_last_line(start: Start, script: str, how: str, line: str) -> None:
    """Both are there as soon as it counts as ended."""
    process = start(script)
    assert process.wait(10)
    assert (process.ended(), process.last_line()) == (how, line)


def test_a_command_that_is_none(home: Path) -> None:
    """It is an engine that ends at once, having said why."""
    process = EngineProcess(["no-such-program", "--key", "secret"], home / "log", 1, {})
    assert process.wait(10)
    assert process.ended() == "ended with exit code 127"
    assert process.last_lines() == ["the engine's command cannot be executed: "
                                    "No such file or directory"]


def test_its_id_is_that_of_the_command(start: Start) -> None:
    """What users see of it, not the guard; while it runs it has not ended."""
    process = start("echo $$; exec sleep 1000")
    wait_until(process.last_line, "its first line")
    assert process.last_line() == str(process.pid)
    assert process.ended() is None
    assert not process.wait(0)


def test_its_environment(start: Start, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway's, without what is the gateway's own; and the gateway's directory."""
    monkeypatch.setenv("LOOP_KEYS", "secret")
    monkeypatch.setenv("ENGINE_KEY", "of the engine")
    process = start("env; pwd")
    assert process.wait(10)
    lines = process.last_lines()
    assert "ENGINE_KEY=of the engine" in lines
    assert str(home) == lines[-1]
    assert sorted(line.partition("=")[0] for line in lines if line.startswith("LOOP_")) == [
        "LOOP_ENGINE_GATEWAY", "LOOP_ENGINE_HOME", "LOOP_ENGINE_PROCESS"]


def test_stopping_blocks_until_it_is_gone(start: Start, home: Path) -> None:
    """What ignores SIGTERM gets SIGKILL in time, with its children; another stop is no harm."""
    process = start(STUBBORN, seconds_to_stop=0.2)
    family = written_pids(home / "pids", 2)
    process.stop()
    assert process.ended() == "was ended by SIGKILL"
    assert not any(running(pid) for pid in family)
    process.stop()
    process.kill()
    assert process.memory() is None


def test_many_threads_stop_and_wait(start: Start) -> None:
    """All of them go on when it is gone."""
    process = start("trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.01; done")
    wait_until(process.last_line, "its first line")
    works = [process.stop, process.wait, process.stop, process.wait]
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert process.ended() == "ended with exit code 0"
    assert process.last_lines().count("asked") == 1


def test_killing_takes_no_time_to_stop(start: Start, home: Path) -> None:
    """Everything gets SIGKILL at once, however long it would have had; also while stopping."""
    process = start(STUBBORN, seconds_to_stop=600)
    family = written_pids(home / "pids", 2)
    stopping = threading.Thread(target=process.stop)
    stopping.start()
    process.kill()
    assert process.ended() == "was ended by SIGKILL"
    assert not any(running(pid) for pid in family)
    stopping.join(10)
    assert not stopping.is_alive()


@pytest.mark.parametrize("clears", ["", "env -i "], ids=["marked", "unmarked"])
def test_a_killed_guard_leaves_nothing(start: Start, home: Path, clears: str) -> None:
    """What the guard can no longer do is done here, to children without an environment too."""
    process = start(f"{clears}sh -c 'echo $$ >> pids; exec sleep 1000' & "
                    "(setsid sleep 1000 & echo $! >> pids); echo $$ >> pids; wait")
    family = written_pids(home / "pids", 3)
    os.kill(guard_of(process), signal.SIGKILL)
    assert process.wait(10)
    assert process.ended() == "was ended by SIGKILL"
    wait_until_gone(family)


def guard_of(process: EngineProcess) -> int:
    """The process id of the engine's parent."""
    stat = Path(f"/proc/{process.pid}/stat").read_text("utf-8")
    return int(stat.rpartition(")")[2].split()[1])


def test_a_guard_that_does_nothing_is_no_obstacle(start: Start, home: Path) -> None:
    """Even when it has been halted, stopping and killing end in time."""
    process = start(STUBBORN, seconds_to_stop=0.1)
    family = written_pids(home / "pids", 2)
    os.kill(guard_of(process), signal.SIGSTOP)
    process.stop()
    assert process.ended() == "was ended by SIGKILL"
    wait_until_gone(family)


def test_nothing_is_left_of_an_engine_that_ends(start: Start, home: Path) -> None:
    """No child, no zombie of ours, no descriptor and no thread."""
    before = set(os.listdir("/proc/self/fd")), threading.active_count()
    process = start("sleep 1000 & echo $! >> pids; exit 3")
    assert process.wait(10)
    assert not running(written_pids(home / "pids", 1)[0])
    assert not zombies_below(os.getpid())
    wait_until(lambda: threading.active_count() <= before[1], "the end of its threads")
    assert set(os.listdir("/proc/self/fd")) <= before[0]
    assert not carrying(f"LOOP_ENGINE_HOME={home}\0")


def test_its_memory_is_that_of_the_tree(start: Start) -> None:
    """A child's counts with it; the guard's own does not."""
    large = 'x = bytearray(60_000_000); print("large", flush=True); import time; time.sleep(1000)'
    os.mkfifo("go")
    process = start(f"echo small; read line < go; {sys.executable} -S -c '{large}'; true")
    wait_until(lambda: process.last_line() == "small", "its first line")
    assert 0 < (process.memory() or 0) < 8_000_000
    Path("go").write_text("\n", "ascii")
    wait_until(lambda: process.last_line() == "large", "its child")
    assert 60_000_000 < (process.memory() or 0) < 120_000_000


def test_its_last_words_are_waited_for(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as ended once they have been read, even where the log is slow to be written."""
    def write_slowly(log: LogFile, data: bytes) -> None:
        time.sleep(0.3)

    monkeypatch.setattr(LogFile, "write", write_slowly)
    process = start("echo first; sleep 0.1; echo last")
    assert process.wait(10)
    assert process.last_lines() == ["first", "last"]


def test_closed_output_is_no_end(start: Start) -> None:
    """An engine may close what it writes to and run on."""
    process = start("echo last; exec >&- 2>&-; exec sleep 1000")
    wait_until(process.last_line, "its only line")
    time.sleep(0.05)
    assert process.ended() is None
    process.stop()
    assert (process.ended(), process.last_line()) == ("was ended by SIGTERM", "last")
