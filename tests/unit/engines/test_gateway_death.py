"""Engines end with the gateway, however that ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from app.engines.orphans import end_orphans
from tests.fakes.engine_owner import Owner
from tests.fakes.marked import written_pids
from tests.fakes.processes import running, wait_until_gone

STUBBORN = """
    trap '' TERM
    sh -c 'echo $$ >> "$1"; exec sleep 1000' - "$1" &
    env -i sh -c 'echo $$ >> "$1"; exec sleep 1000' - "$1" &
    (setsid sh -c 'echo $$ >> "$1"; exec sleep 1000' - "$1" &)
    wait
"""


def stubborn(home: Path) -> list[str]:
    """An engine that ignores SIGTERM and has three children, which write their ids down."""
    return ["sh", "-c", STUBBORN, "-", str(home / "pids")]


def test_a_killed_gateway_takes_its_engine_along(home: Path) -> None:
    """SIGKILL gives it no chance to stop anything; the guard does, all of it."""
    with Owner(home, 0.1, stubborn(home)) as owner:
        family = [owner.guard, owner.engine, *written_pids(home / "pids", 3)]
        owner.kill()
        wait_until_gone(family)


def test_a_polite_engine_is_asked_first(home: Path) -> None:
    """It may put things in order when the gateway has died, and say so to nobody."""
    script = ("trap 'head -c 500000 /dev/zero; echo tidy > tidied; exit' TERM; echo $$ > pids; "
              "while :; do sleep 0.01; done")
    with Owner(home, 5, ["sh", "-c", f"cd {home}; {script}"]) as owner:
        written_pids(home / "pids", 1)
        owner.kill()
        wait_until_gone([owner.guard])
    assert (home / "tidied").read_text("ascii") == "tidy\n"


def test_what_is_left_is_ended_by_the_next_gateway(home: Path) -> None:
    """Gateway and guard killed at once: what remains goes, and that is counted."""
    with Owner(home, 5, stubborn(home)) as owner:
        children = written_pids(home / "pids", 3)
        owner.process.send_signal(signal.SIGSTOP)  # so that it does not see the guard end
        os.kill(owner.guard, signal.SIGKILL)
        wait_until_gone([owner.engine])
        assert all(running(pid) for pid in children)
        assert end_orphans(home) == 0
        owner.kill()
        assert end_orphans(home) == 3
        assert not any(running(pid) for pid in children)
        assert end_orphans(home) == 0


def test_a_living_gateway_keeps_its_engine(home: Path) -> None:
    """Another one with the same home, and this home only, is none of our business."""
    (home / "other").mkdir()
    with Owner(home, 0.1, stubborn(home)) as owner:
        family = [owner.guard, owner.engine, *written_pids(home / "pids", 3)]
        assert end_orphans(home) == end_orphans(home / "other") == 0
        assert all(running(pid) for pid in family)
        owner.kill()
        wait_until_gone(family)
