"""`scripts/serve` without a configuration: every model can be had, none is loaded before it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from app.launcher.memory import available
from tests.fakes.processes import command_line
from tests.fakes.registry_home import RegistryHome
from tests.server.calls import get
from tests.server.serve_process import ServeProcess


def engines(serve: ServeProcess) -> dict[str, Any]:
    """What its gateway says of its engines, once it is up."""
    serve.wait_until_up()
    return dict(get(serve.url, "/engines").json())


def test_every_model_has_an_engine_that_waits(tmp_path: Path) -> None:
    """There is one for each, none runs, and together they may take 80 % of the memory."""
    names = ["a/b:1", "c/d:2", "e/f:3", "g/h:4", "i/j:5"]
    home = RegistryHome(tmp_path / "loop")
    for name in names:
        home.add(name)
    with ServeProcess(tmp_path) as serve:
        found = engines(serve)
        assert [(entry["models"], entry["state"]) for entry in found["engines"]] == [
            ([name], "stopped") for name in names]
        assert found["memory_budget"] == int(available() * 0.8)
        assert all("gunicorn" in command_line(pid) for pid in serve.family())
    assert "\nmodels: a/b:1, c/d:2, e/f:3 and 2 more\n" in serve.output()
    assert f"\nengine logs: {tmp_path}/loop/logs/engines/\n" in serve.output()


def test_engines_of_the_environment_count(tmp_path: Path) -> None:
    """Where the environment names engines, they are the only ones, and no model is downloaded."""
    own = [{"url": "http://127.0.0.1:1", "models": ["m"]}]
    with ServeProcess(tmp_path, LOOP_LOOP_ENGINES=json.dumps(own), PIP_NO_INDEX="1") as serve:
        assert [entry["kind"] for entry in engines(serve)["engines"]] == ["attached"]
