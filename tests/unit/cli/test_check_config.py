"""``check-config`` and the command line as a whole: what is printed where, the exit status."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import main

ROOT = Path(__file__).parents[3]
GOOD = ("server: {port: 5}\nloop: {engines: [{url: 'http://a', models: [m]}, "
        "{url: 'http://b', models: [m]}]}")
SAYS_GOOD = "the configuration is good: 127.0.0.1:5, 2 engine(s)\n"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that LOOP_CONFIG names, still to be written; no other LOOP_ variable is set."""
    for name in os.environ:
        if name.startswith("LOOP_"):
            monkeypatch.delenv(name)
    path = tmp_path / "gateway.yml"
    monkeypatch.setenv("LOOP_CONFIG", str(path))
    return path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "app.cli", *arguments], cwd=ROOT,
                          capture_output=True, text=True, timeout=60)


def test_a_good_configuration_is_called_good(
        config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line says what would be served; nothing else is printed."""
    config.write_text(GOOD)
    assert main(["check-config"]) == 0
    assert capsys.readouterr() == (SAYS_GOOD, "")


def test_keys_without_effect_are_told(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They make no bad configuration, but one to be warned of."""
    config.write_text(GOOD.replace("models: [m]}, ", "models: [m], pinned: true}, "))
    assert main(["check-config"]) == 0
    assert capsys.readouterr() == (
        SAYS_GOOD, "loop.engines.pinned is set, but nothing acts on it\n")


def test_every_problem_is_printed(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, with exit status 1."""
    config.write_text("server: {port: 0, threads: 0}")
    assert main(["check-config"]) == 1
    rule = "0 must be a whole number from 1 to"
    assert capsys.readouterr() == ("", (
        "the configuration has 2 problems:\n"
        f"  {config}: server.port: {rule} 65535\n  {config}: server.threads: {rule} 10000\n"))


@pytest.mark.parametrize("arguments", [[], ["check"], ["check-config", "x"], ["--nope"]])
def test_wrong_usage_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The exit status is 2, as for other commands."""
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m app.cli")


def test_help_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Who does not know it finds it."""
    with pytest.raises(SystemExit) as raised:
        main(["--help"])
    assert raised.value.code == 0
    assert "check-config" in capsys.readouterr().out


def test_it_runs_as_a_module(config: Path) -> None:
    """The documented command line works, for a good configuration."""
    config.write_text(GOOD)
    done = run("check-config")
    assert (done.returncode, done.stdout, done.stderr) == (0, SAYS_GOOD, "")


def test_a_bad_configuration_ends_the_module_with_1(config: Path) -> None:
    """Scripts can tell, and there is no stack trace."""
    config.write_text("server: {port: 0}")
    done = run("check-config")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ("the configuration has a problem:\n"
                           f"  {config}: server.port: 0 must be a whole number from 1 to 65535\n")
