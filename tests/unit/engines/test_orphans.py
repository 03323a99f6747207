"""What dead gateways have left is ended, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.engines.orphans import end_orphans, marks
from tests.fakes.marked import end_written, written_pids
from tests.fakes.processes import command_line, running, wait_until

ROOT = Path(__file__).parents[3]
Start = Callable[..., "subprocess.Popen[bytes]"]
# Says how many processes of dead gateways with this home it has ended.
END = "import sys; from pathlib import Path; from app.engines.orphans import end_orphans; " \
      "print(end_orphans(Path(sys.argv[1])))"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a shell script in a session of its own, with these marks."""
    started: list[subprocess.Popen[bytes]] = []

    def start(script: str, carried: dict[str, str],
              new_session: bool = True) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sh", "-c", script], env={**os.environ, **carried},
                                        cwd=tmp_path, start_new_session=new_session))
        if script.startswith("exec "):  # in the midst of it a process has no environment
            pid = started[-1].pid
            wait_until(lambda: f"exec {command_line(pid)}".strip() == script, "the program", 10)
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
    end_written(tmp_path / "pids")


def of_a_dead_gateway(home: Path) -> dict[str, str]:
    """The marks of one that has ended."""
    program = "import sys; from pathlib import Path; from app.engines.orphans import marks; " \
              "print(marks(Path(sys.argv[1]))['LOOP_ENGINE_GATEWAY'])"
    told = subprocess.run([sys.executable, "-c", program, home], cwd=ROOT,
                          stdout=subprocess.PIPE, check=True, text=True)
    return {**marks(home), "LOOP_ENGINE_GATEWAY": told.stdout.strip()}


def test_the_marks_say_which_gateway(tmp_path: Path) -> None:
    """Its home by its one true path, and this process with the time it started at."""
    (tmp_path / "link").symlink_to(tmp_path)
    started = Path("/proc/self/stat").read_text("utf-8").rpartition(")")[2].split()[19]
    assert marks(tmp_path / "link") == marks(tmp_path) == {
        "LOOP_ENGINE_HOME": str(tmp_path), "LOOP_ENGINE_GATEWAY": f"{os.getpid()}-{started}"}


def test_orphans_are_ended_with_their_kin(start: Start, tmp_path: Path) -> None:
    """Also children without the marks, and what is in their session without a living parent."""
    orphan = start("env -i sh -c 'echo $$ >> pids; exec sleep 1000' & "
                   "(env -i sh -c 'echo $$ >> pids; exec sleep 1000' &); "
                   "(env -i setsid sh -c 'echo $$ >> pids; exec sleep 1000' &); wait",
                   of_a_dead_gateway(tmp_path))
    family = written_pids(tmp_path / "pids", 3)
    unmarked_daemon = next(pid for pid in family if os.getsid(pid) == pid)
    assert end_orphans(tmp_path) == 3
    assert orphan.wait(10) == -9
    assert [pid for pid in family if running(pid)] == [unmarked_daemon]


def test_a_reused_process_id_is_no_gateway(start: Start, tmp_path: Path) -> None:
    """A process with the id of the gateway, but started at another time, is another one."""
    carried = {**marks(tmp_path), "LOOP_ENGINE_GATEWAY": f"{os.getpid()}-1"}
    orphan = start("exec sleep 1000", carried)
    assert end_orphans(tmp_path) == 1
    assert orphan.wait(10) == -9


def test_a_gateway_that_is_a_zombie_is_dead(start: Start, tmp_path: Path) -> None:
    """Its parent just has not asked for it yet."""
    with subprocess.Popen(["true"]) as gateway:
        os.waitid(os.P_PID, gateway.pid, os.WEXITED | os.WNOWAIT)
        stat = Path(f"/proc/{gateway.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        carried = {**marks(tmp_path), "LOOP_ENGINE_GATEWAY": f"{gateway.pid}-{stat[19]}"}
        start("exec sleep 1000", carried)
        assert end_orphans(tmp_path) == 1


@pytest.mark.parametrize("change", [
    {}, {"LOOP_ENGINE_HOME": "/elsewhere", "LOOP_ENGINE_GATEWAY": "1-1"},
    {"LOOP_ENGINE_HOME": "", "LOOP_ENGINE_GATEWAY": "1-1"}, {"LOOP_ENGINE_GATEWAY": ""},
    {"LOOP_ENGINE_GATEWAY": "1"}, {"LOOP_ENGINE_GATEWAY": "x-1"},
    {"LOOP_ENGINE_GATEWAY": "-1-1"}], ids=str)
def test_nothing_else_is_touched(start: Start, tmp_path: Path, change: dict[str, str]) -> None:
    """Neither a living gateway's, nor another home's, nor what has no whole mark."""
    process = start("exec sleep 1000", {**marks(tmp_path), **change})
    assert end_orphans(tmp_path) == 0
    assert process.poll() is None


def test_marks_on_a_command_line_are_none(start: Start, tmp_path: Path) -> None:
    """Only the environment counts."""
    words = " ".join(f"{name}={value}" for name, value in of_a_dead_gateway(tmp_path).items())
    process = start(f": {words}; exec sleep 1000", {})
    assert end_orphans(tmp_path) == 0
    assert process.poll() is None


def test_others_in_a_foreign_session_are_spared(start: Start, tmp_path: Path) -> None:
    """Of a session that somebody else began, only what is marked is ended: here, our own."""
    orphan = start("exec sleep 1000", of_a_dead_gateway(tmp_path), new_session=False)
    neighbour = start("exec sleep 1000", {}, new_session=False)
    assert end_orphans(tmp_path) == 1
    assert orphan.wait(10) == -9
    assert neighbour.poll() is None
    start("sleep 1000 & echo $! >> pids; env $MARKED sleep 1000 & wait", {
        "MARKED": " ".join(f"{k}={v}" for k, v in of_a_dead_gateway(tmp_path).items())})
    [unmarked] = written_pids(tmp_path / "pids", 1)
    wait_until(lambda: end_orphans(tmp_path), "the end of the one that is marked")
    assert running(unmarked)


def test_others_in_the_gateways_own_session_are_spared(start: Start, tmp_path: Path) -> None:
    """Even when who began it is gone: so it is when a terminal has been closed."""
    marked = " ".join(f"{k}={v}" for k, v in of_a_dead_gateway(tmp_path).items())
    leader = start("sleep 1000 & echo $! >> pids; env $MARKED sleep 1000 & "
                   "while [ -d /proc/$$ ]; do sleep 0.01; done && "
                   "\"$PYTHON\" -c \"$END\" . > told &",
                   {"MARKED": marked, "PYTHON": sys.executable, "END": END,
                    "PYTHONPATH": str(ROOT)})
    leader.wait()
    [neighbour] = written_pids(tmp_path / "pids", 1)
    wait_until(lambda: (tmp_path / "told").exists() and (tmp_path / "told").read_text("ascii"),
               "the end of the one that is marked")
    assert (tmp_path / "told").read_text("ascii") == "1\n"
    assert running(neighbour)


def test_a_gateway_does_not_end_itself(tmp_path: Path) -> None:
    """One that was started by an orphan, and carries its marks, lives on."""
    told = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" "$2"; echo alive', sys.executable, END, str(tmp_path)],
        cwd=ROOT, env={**os.environ, **of_a_dead_gateway(tmp_path)},
        stdout=subprocess.PIPE, check=True, text=True, start_new_session=True)
    assert told.stdout.split() == ["0", "alive"]
