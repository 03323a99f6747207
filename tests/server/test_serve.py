"""`scripts/serve` as a process, in front of engines that a configuration names."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.keys import hash_of
from tests.fakes.engine_steps import reply, silence
from tests.fakes.processes import command_line, running, wait_until, wait_until_gone
from tests.fakes.raw_client import RawClient, fetch
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.calls import CHAT, HELLO, JSON, to_bytes
from tests.server.serve_process import ServeProcess


@pytest.fixture
def engine() -> Iterator[RawEngine]:
    """An engine of this test's own."""
    with RawEngine(reply()) as engine:
        yield engine


@pytest.fixture
def config(tmp_path: Path, engine: RawEngine) -> Path:
    """A configuration that names the engine for model m, which the registry holds."""
    RegistryHome(tmp_path / "loop").add("m")
    path = tmp_path / "my.yml"
    path.write_text(json.dumps({"loop": {"engines": [{"url": engine.url, "models": ["m"]}]}}))
    return path


@pytest.fixture
def serve(tmp_path: Path, config: Path) -> Iterator[ServeProcess]:
    """The launcher with that configuration, up and serving."""
    with ServeProcess(tmp_path, "--config", str(config)) as process:
        process.wait_until_up()
        yield process


def begin_chat(serve: ServeProcess, engine: RawEngine) -> RawClient:
    """A client whose chat has reached an engine that stays silent."""
    engine.answer_with(silence)
    client = RawClient(serve.url)
    body = to_bytes(HELLO)
    head = [("Host", client.host), *JSON, ("Content-Length", str(len(body)))]
    lines = "".join(f"{name}: {value}\r\n" for name, value in head)
    client.send(f"POST {CHAT} HTTP/1.1\r\n{lines}\r\n".encode() + body)
    engine.wait_for_requests(1)
    return client


def gateway(serve: ServeProcess) -> int:
    """The process id of gunicorn's arbiter, the first child."""
    return next(pid for pid in serve.family() if "gunicorn" in command_line(pid))


def test_the_printed_line_works_when_pasted(serve: ServeProcess) -> None:
    """With --config, the line it prints is a chat with the first model, answered by its engine."""
    assert "models: m\n" in serve.output() and "engine logs" not in serve.output()
    done = subprocess.run(serve.wait_until_up(), shell=True, capture_output=True, check=True)
    assert json.loads(done.stdout)["choices"][0]["message"]["content"] == "hi"


def test_with_a_configuration_no_engine_is_started(serve: ServeProcess) -> None:
    """With --config there is the gateway and nothing else."""
    assert all("gunicorn" in command_line(pid) for pid in serve.family())
    assert fetch(serve.url, "GET", "/health").status == 200


def test_where_there_are_keys_the_line_takes_one(
        tmp_path: Path, config: Path, engine: RawEngine) -> None:
    """From a variable of the shell; a path of the configuration is the caller's, not ours."""
    keys = tmp_path / "keys.yml"
    keys.write_text(json.dumps([{"name": "a", "sha256": hash_of("sk-1")}]))
    keys.chmod(0o600)
    settings = {"keys-file": "keys.yml", **json.loads(config.read_text())}
    config.write_text(json.dumps(settings))
    with ServeProcess(tmp_path, "--directory", str(tmp_path), "--config", config.name) as serve:
        line = serve.wait_until_up()
        found = [subprocess.run(line, shell=True, capture_output=True, check=True,
                                env={**os.environ, "KEY": key}).stdout for key in ("sk-1", "sk-2")]
    assert [json.loads(each).get("object") for each in found] == ["list", None]
    assert b"invalid_api_key" in found[1]


def test_without_models_the_line_lists_them(tmp_path: Path, engine: RawEngine) -> None:
    """Where the gateway lists no model, the printed line is the listing."""
    config = tmp_path / "my.yml"
    config.write_text(json.dumps({"loop": {"engines": [{"url": engine.url, "models": ["x"]}]}}))
    with ServeProcess(tmp_path, LOOP_CONFIG=str(config)) as serve:
        line = serve.wait_until_up()
    assert shlex.split(line) == ["curl", "-s", f"{serve.url}/v1/models"]


def test_relative_paths_start_where_the_user_is(tmp_path: Path, config: Path) -> None:
    """A relative --config and a relative home are looked for in the directory of the call."""
    arguments = ["--directory", str(tmp_path), "--config", config.name]
    with ServeProcess(tmp_path, *arguments, LOOP_LOOP_HOME="loop") as serve:
        assert '"model":"m"' in serve.wait_until_up()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_stops_all_of_it(serve: ServeProcess, name: str) -> None:
    """Ctrl-C, SIGTERM and a closed terminal end it with exit code 0 and leave nothing running."""
    family = serve.family()
    serve.process.send_signal(signal.Signals[name])
    assert serve.code() == 0
    assert not [pid for pid in family if running(pid)]
    assert serve.last_line() == "stopped"


def test_a_second_ctrl_c_does_not_wait(serve: ServeProcess, engine: RawEngine) -> None:
    """While a call is open the first Ctrl-C lets it go on; the second one ends all at once."""
    with begin_chat(serve, engine):
        family = serve.family()
        serve.process.send_signal(signal.SIGINT)
        wait_until(lambda: "Handling signal: term" in serve.output(), "the first signal's effect")
        assert running(gateway(serve))
        serve.process.send_signal(signal.SIGINT)
        assert serve.code() == 0
        assert not [pid for pid in family if running(pid)]
        assert "Shutting down" not in serve.output()  # it had no time to


def test_an_open_call_holds_up_the_end_for_a_while_only(
        serve: ServeProcess, engine: RawEngine) -> None:
    """A call that does not end is cut off, and everything stops after one Ctrl-C too."""
    with begin_chat(serve, engine):
        family = serve.family()
        serve.process.send_signal(signal.SIGINT)
        assert serve.code() == 0
        assert not [pid for pid in family if running(pid)]


@pytest.mark.parametrize("busy", [False, True])
def test_killing_it_leaves_nothing(serve: ServeProcess, engine: RawEngine, busy: bool) -> None:
    """After kill -9 of the launcher, gunicorn and its worker go too, with or without a call."""
    client = begin_chat(serve, engine) if busy else None
    family = serve.family()
    assert len(family) == 2
    serve.process.kill()
    wait_until_gone(family)
    if client:
        client.close()


def test_the_death_of_the_gateway_is_told(serve: ServeProcess) -> None:
    """When the gateway is killed, one sentence says so, its worker is ended, the exit code is 1."""
    family = serve.family()
    os.kill(gateway(serve), signal.SIGKILL)
    assert serve.code() == 1
    assert serve.last_line().startswith("the gateway was ended by SIGKILL: ")
    assert not [pid for pid in family if running(pid)]


def test_a_gateway_that_does_not_start_is_told(tmp_path: Path, config: Path) -> None:
    """When the gateway ends while starting, its reason and its exit code are in the sentence."""
    with ServeProcess(tmp_path, "--config", str(config), GUNICORN_CMD_ARGS="--workers 2") as serve:
        assert serve.code() == 1
    assert serve.last_line().startswith("the gateway ended with exit code ")
    assert "one worker process" in serve.last_line()


@pytest.mark.parametrize("arguments", ["", "--config '{config}'"])
def test_a_port_in_use_is_told(tmp_path: Path, config: Path, arguments: str) -> None:
    """A port that is taken is one sentence with its number and the command that avoids it."""
    given = shlex.split(arguments.format(config=config))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with ServeProcess(tmp_path, *given, LOOP_SERVER_PORT=str(port)) as serve:
            assert serve.code() == 1
    command = shlex.join(["scripts/serve", *given])
    [line] = serve.output().splitlines()
    assert line.startswith(f"port {port} on 127.0.0.1 is in use: ")
    assert line.endswith(f"LOOP_SERVER_PORT={port + 1} {command}")


@pytest.mark.parametrize("arguments,environ,said", [
    (["--config", "/nowhere.yml"], {}, "/nowhere.yml"),
    ([], {"LOOP_SERVER_PORT": "80800"}, "'80800' must be a whole number"),
    (["--directory", "/nowhere"], {}, "/nowhere cannot be entered"),
])
def test_what_keeps_it_from_starting_is_told(
        tmp_path: Path, config: Path, arguments: list[str], environ: dict[str, str],
        said: str) -> None:
    """A start that cannot work ends with exit code 1 and the reason, without a stack trace."""
    given = [argument.format(config=config) for argument in arguments]
    with ServeProcess(tmp_path, *given, **environ) as serve:
        assert serve.code() == 1
    assert said in serve.output()
    assert "Traceback" not in serve.output()


def test_the_form_of_log_lines_can_be_chosen(tmp_path: Path, config: Path) -> None:
    """With --log-format; what is printed for people stays as it is."""
    with ServeProcess(tmp_path, "--config", str(config), "--log-format", "text") as serve:
        subprocess.run(serve.wait_until_up(), shell=True, capture_output=True, check=True)
        wait_until(lambda: f" POST {CHAT} 200 " in serve.output(), "the line of the chat")
    assert f"the gateway is at {serve.url}" in serve.output()
