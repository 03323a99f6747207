"""A registry for the command line, and commands in this process and in one of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from tests.fakes.deaths import ROOT

Run = Callable[..., tuple[int, str, str]]
Process = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The registry that the configuration names; nothing else is configured."""
    for name in [*os.environ]:
        if name.startswith(("LOOP_", "HF_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LOOP_LOOP_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs a command: its exit status, standard output and standard error."""
    def ran(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()
    return ran


@pytest.fixture
def run_json(run: Run) -> Callable[..., Any]:
    """A function that runs a command with --json and reads its one line of output."""
    def ran(*arguments: object) -> Any:
        status, out, err = run(*arguments, "--json")
        assert (status, err, out.count("\n")) == (0, "", 1)
        return json.loads(out)
    return ran


@pytest.fixture
def process(home: Path) -> Process:
    """A function that starts a command in a process of its own."""
    def started(*arguments: str | bytes, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "app.cli", *arguments], cwd=ROOT, text=True,
            env={**os.environ, **environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return started
