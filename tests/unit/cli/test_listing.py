"""``models``, ``version``, ``check-config --json``, and what all commands have in common."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from app.config import load
from app.factory import create_app
from tests.fakes.registry_home import LLAMA, RegistryHome
from tests.unit.cli.conftest import Run

RunJson = Callable[..., Any]
COMMANDS = ["check-config", "models", "inspect", "pull", "add", "ls", "show", "rm", "verify", "gc",
            "keys", "version"]


@pytest.fixture
def served(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry of two models, one of which has two engines."""
    registry = RegistryHome(home)
    for name in ("org/One:Q8_0", "org/Two:Q4_0"):
        registry.add_files(name, {"model.gguf": LLAMA})
    monkeypatch.setenv("LOOP_LOOP_ENGINES", "[{url: 'http://127.0.0.1:1', models: [org/one]},"
                       "{url: 'http://127.0.0.1:2', models: ['other']},"
                       "{command: builtin, models: ['ORG/ONE:*']}]")
    return home


def test_models_are_those_of_the_gateway(served: Path, run_json: RunJson) -> None:
    """Field by field, but for what only a gateway that runs knows; and which engines serve them."""
    found = run_json("models")
    told = create_app(load()).test_client().get("/v1/models").json
    assert told is not None and len(told["data"]) == 2
    engines = [model.pop("engines") for model in found["data"]]
    for model in told["data"]:
        del model["status"]
    assert found == told
    assert engines[1] == [] and "loop.engines[2]" in engines[0]


def test_models_are_a_table_for_people(served: Path, run: Run) -> None:
    """With a head; what is not known is a dash."""
    status, out, err = run("models")
    rows = [line.split("  ") for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert out.splitlines()[0].split("  ")[0] == "MODEL" and len(rows) == 3
    assert rows[1][0] == "org/One:Q8_0" and "loop.engines[2]" in rows[1][-1]
    assert rows[2][0] == "org/Two:Q4_0" and rows[2][-1] == "nothing"


def test_the_version_is_told(run: Run, run_json: RunJson) -> None:
    """With that of Python, which bug reports need."""
    found = run_json("version")
    assert found["python"] == platform.python_version() and found["version"]
    assert run("version")[1] == f"Loop Gateway {found['version']}, Python {found['python']}\n"


def test_check_config_speaks_json(home: Path, run: Run, run_json: RunJson,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Of good and of bad configurations; the exit status is the same as without."""
    monkeypatch.setenv("LOOP_SERVER_PORT", "5")
    assert run_json("check-config") == {
        "good": True, "problems": [], "without_effect": [], "address": "127.0.0.1", "port": 5,
        "engines": 0}
    monkeypatch.setenv("LOOP_SERVER_PORT", "0")
    status, out, err = run("check-config", "--json")
    rule = "LOOP_SERVER_PORT: server.port: '0' must be a whole number from 1 to 65535"
    assert (status, err) == (1, "")
    assert out == ('{"good":false,"problems":[{"source":"LOOP_SERVER_PORT","key":"server.port",'
                   f'"problem":"{rule}"}}]}}\n')


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what it does and, where it prints something, that it speaks JSON."""
    with pytest.raises(SystemExit) as raised:
        main([command, *(["new"] if command == "keys" else []), "--help"])
    out = capsys.readouterr().out
    assert raised.value.code == 0 and "--json" in out and out.count("\n") > 4


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """None is missing from the table above."""
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    named = [line.split()[0] for line in out.splitlines() if line[:4] == "    " and line[4:5] > " "]
    assert sorted(named) == sorted(COMMANDS)
