"""The systemd unit: systemd understands it, and what it starts can be reloaded and stopped."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.server.master import longest_end
from app.settings import BUILTIN, EngineSettings, LoopSettings, Settings
from tests.fakes.processes import wait_until
from tests.server.gateway_process import ROOT, STOP_LIMIT, free_port
from tests.server.running.changing import READ_AGAIN
from tests.server.running.service_unit import UNIT, ServiceUnit, installed

ANALYZE = shutil.which("systemd-analyze")


@pytest.fixture
def unit(tmp_path: Path) -> ServiceUnit:
    """The unit as if it were installed."""
    return ServiceUnit(installed(tmp_path))


def test_systemd_accepts_it(tmp_path: Path) -> None:
    """It verifies without a word, and leaves little exposed.

    Where there is no systemd-analyze (Debian: apt-get install systemd), keys and sections are
    compared with those that systemd has.
    """
    text = installed(tmp_path)
    ServiceUnit(text)
    if ANALYZE is None:
        print("there is no systemd-analyze here: only the names of sections and keys were checked")
        return
    path = tmp_path / UNIT.name
    path.write_text(text, encoding="utf-8")
    verified = subprocess.run(
        [ANALYZE, "verify", str(path)], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")
    security = [ANALYZE, "security", "--offline=true", "--threshold=30", str(path)]
    assert subprocess.run(security, capture_output=True, check=False).returncode == 0


def test_it_has_no_rights(unit: ServiceUnit) -> None:
    """It is nobody in particular, can become nobody else, and writes below its state alone."""
    assert unit.one("User") == unit.one("Group") != "root"
    assert unit.one("NoNewPrivileges") == "yes" and unit.one("CapabilityBoundingSet") == ""
    assert unit.one("ProtectSystem") == "strict" and unit.one("ProtectHome") == "yes"
    home = UNIT.read_text(encoding="utf-8").partition("LOOP_LOOP_HOME=")[2].splitlines()[0]
    assert home == f"/var/lib/{unit.one('StateDirectory')}"


def test_it_leaves_time_to_end(unit: ServiceUnit) -> None:
    """For calls by default, and for an engine that ignores SIGTERM; the gateway alone is told."""
    engines = (EngineSettings("", ("m",), command=BUILTIN),)
    assert longest_end(Settings(loop=LoopSettings(engines=engines))) < int(
        unit.one("TimeoutStopSec"))
    assert unit.one("KillMode") == "mixed"


@pytest.fixture
def process(unit: ServiceUnit, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """What the unit starts, once it has told systemd that it is ready."""
    config = tmp_path / "gateway.yml"
    config.write_text(yaml.safe_dump({"server": {"port": free_port()}}), encoding="utf-8")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(30)
        environ = {"PATH": os.environ["PATH"], "NOTIFY_SOCKET": str(tmp_path / "notify"),
                   "HOME": str(tmp_path), **unit.environment()}
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(unit.command("ExecStart"), stdout=log, stderr=log,
                                       cwd=unit.one("WorkingDirectory"), env=environ)
        try:
            assert unit.one("Type") == "notify" and b"READY=1" in systemd.recv(4096)
            yield process
        finally:
            process.kill()
            process.wait(STOP_LIMIT)


def test_it_starts_reloads_and_stops(
        unit: ServiceUnit, process: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    """By the commands that stand in it."""
    log = tmp_path / "log"
    assert unit.one("WorkingDirectory") == str(ROOT)
    wait_until(lambda: "Booting worker" in log.read_text(), "the worker")
    reload = unit.command("ExecReload", MAINPID=str(process.pid))

    def told() -> bool:
        subprocess.run(reload, check=True)
        return READ_AGAIN in log.read_text()

    wait_until(told, "the reload")
    process.terminate()
    assert process.wait(STOP_LIMIT) == 0, log.read_text()
