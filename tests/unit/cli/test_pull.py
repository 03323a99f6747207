"""``pull`` as a person uses it: in a process, against a hub on loopback."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.catalog.registry import Registry
from tests.fakes.deaths import ROOT
from tests.fakes.hub import FakeHub, Fault, fake_hub
from tests.fakes.processes import wait_until
from tests.fakes.whole_gguf import LARGE, SMALL
from tests.unit.cli.conftest import Process, Run

PATIENCE = 60.0


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    """A hub with one model."""
    with fake_hub() as running:
        running.add("org/m", {"m-Q8_0.gguf": LARGE})
        yield running


def test_a_model_comes(process: Process, hub: FakeHub, home: Path) -> None:
    """What is in the registry then is told on standard output, the rest on standard error."""
    pulling = process("pull", "hf.co/org/m", HF_ENDPOINT=hub.url)
    out, err = pulling.communicate(timeout=PATIENCE)
    assert (pulling.returncode, out) == (0, "org/m:Q8_0 is in the registry\n")
    lines = err.splitlines()
    assert lines[0] == "pulling manifest" and lines[-1] == "writing manifest"
    assert "pulling m-Q8_0.gguf: 2 of 2 MB" in lines
    assert Registry(home).entries()[0].first_file.read_bytes() == LARGE


def test_events_as_json(process: Process, hub: FakeHub) -> None:
    """One object a line, in Ollama's words; nothing on standard error."""
    out, err = process("pull", "org/m", "--json", HF_ENDPOINT=hub.url).communicate(timeout=PATIENCE)
    events = [json.loads(line) for line in out.splitlines()]
    assert err == "" and events[0] == {"status": "pulling manifest"}
    assert events[-1] == {"status": "success", "model": "org/m:Q8_0"}
    assert any(event.get("completed") == event.get("total") == len(LARGE) for event in events)


def test_its_options(process: Process, hub: FakeHub, home: Path) -> None:
    """A name of one's own, a revision, and reading again what is there."""
    for arguments in (["--name", "mine"], ["--name", "mine", "--check"]):
        pulling = process("pull", "org/m", *arguments, HF_ENDPOINT=hub.url)
        assert pulling.communicate(timeout=PATIENCE)[0] == "mine is in the registry\n"
        blob = next((home / "blobs").iterdir())
        assert blob.read_bytes() == LARGE
        blob.write_bytes(bytes(len(LARGE)))
    pulling = process("pull", "org/m", "--revision", "nope", HF_ENDPOINT=hub.url)
    assert pulling.communicate(timeout=PATIENCE)[1].endswith("org/m has no revision nope\n")
    assert pulling.returncode == 1


def test_the_token_of_the_environment(process: Process, hub: FakeHub) -> None:
    """Opens what is private; without it one sentence says what to do."""
    hub.repos["org/m"].token = "secret"
    pulling = process("pull", "org/m", HF_ENDPOINT=hub.url)
    out, err = pulling.communicate(timeout=PATIENCE)
    assert (pulling.returncode, out) == (1, "") and "set HF_TOKEN" in err
    assert err.count("\n") == 2 and "Traceback" not in err
    pulling = process("pull", "org/m", HF_ENDPOINT=hub.url, HF_TOKEN="secret")
    assert pulling.communicate(timeout=PATIENCE)[0] == "org/m:Q8_0 is in the registry\n"


def test_the_proxy_of_the_environment(process: Process, hub: FakeHub) -> None:
    """Is asked for a hub that only it knows."""
    pulling = process("pull", "org/m", HF_ENDPOINT="http://hub.invalid", HTTP_PROXY=hub.url)
    assert pulling.communicate(timeout=PATIENCE)[0] == "org/m:Q8_0 is in the registry\n"
    assert {seen.headers["Host"] for seen in hub.asked("resolve")} == {"hub.invalid"}


def test_ctrl_c_is_told_and_gone_on_from(process: Process, hub: FakeHub, home: Path) -> None:
    """No stack trace; the next one brings only the rest."""
    fault = Fault("storage", cut=1_000_000, hold=threading.Event())
    hub.faults = [fault]
    pulling = process("pull", "org/m", HF_ENDPOINT=hub.url)
    wait_until(lambda: any(path.stat().st_size == fault.cut
                           for path in home.glob("blobs/.*.partial")), "the first bytes")
    pulling.send_signal(signal.SIGINT)
    out, err = pulling.communicate(timeout=PATIENCE)
    assert fault.hold
    fault.hold.set()
    assert (pulling.returncode, out) == (1, "")
    assert err.splitlines()[-1] == (
        "stopped: what was done so far is kept, start it again to go on")
    assert "Traceback" not in err
    process("pull", "org/m", HF_ENDPOINT=hub.url).communicate(timeout=PATIENCE)
    assert hub.asked("storage")[-1].headers["Range"] == f"bytes={fault.cut}-"
    assert Registry(home).entries()[0].first_file.read_bytes() == LARGE


def test_a_terminal_gets_a_bar(hub: FakeHub, home: Path) -> None:
    """One line that is written over, and in the end complete."""
    master, slave = pty.openpty()
    with subprocess.Popen(
            [sys.executable, "-m", "app.cli", "pull", "org/m"], cwd=ROOT, stdin=slave,
            stdout=subprocess.DEVNULL, stderr=slave,
            env={**os.environ, "HF_ENDPOINT": hub.url, "COLUMNS": "80"}) as pulling:
        os.close(slave)
        shown = b""
        try:
            while piece := os.read(master, 65536):
                shown += piece
        except OSError:  # the other end is closed
            pass
    os.close(master)
    assert pulling.returncode == 0
    drawn = [part for part in shown.decode().split("\r") if part.startswith("[")]
    assert drawn[-1].startswith("[" + "#" * 24 + "] 100 % pulling m-Q8_0.gguf: 2 of 2 MB")


@pytest.mark.parametrize("model", ["org", "../x/y", "org/m:a:b", "https://example.org/a/b", ""])
def test_what_names_no_model_is_wrong_usage(run: Run, model: str) -> None:
    """Exit status 2, and what to write."""
    status, out, err = run("pull", model)
    assert (status, out) == (2, "") and "write ORG/REPO or ORG/REPO:QUANT" in err


def test_without_the_library_it_says_what_to_install(run: Run, home: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else works without it."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    status, _, err = run("pull", "org/m")
    assert status == 1 and "pip install 'loop-gateway[pull]'" in err
    assert run("ls")[0] == 0


def test_small_files_need_no_bar(process: Process, hub: FakeHub) -> None:
    """What is whole at once is not counted up."""
    hub.add("org/s", {"s-Q8_0.gguf": SMALL})
    err = process("pull", "org/s", HF_ENDPOINT=hub.url).communicate(timeout=PATIENCE)[1]
    assert err == "pulling manifest\nverifying sha256 digest\nwriting manifest\n"
