"""`scripts/serve` as it is meant: the gateway in front of the built-in engine, with one command."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.conftest import ALIAS
from tests.fakes.processes import command_line, running, wait_until, wait_until_gone
from tests.fakes.raw_client import RawClient
from tests.fakes.registry_home import LLAMA, RegistryHome
from tests.server.calls import CHAT, get, post, to_bytes
from tests.server.serve_process import ServeProcess

pytestmark = pytest.mark.engine
HELLO = {"model": ALIAS, "temperature": 0, "messages": [{"role": "user", "content": "hello"}]}


def start(directory: Path, demo_home: Path, *arguments: str) -> ServeProcess:
    """The launcher with the demo model in its registry and no way to download anything."""
    home = RegistryHome(directory / "loop")
    shutil.rmtree(home.path / "blobs")
    (home.path / "blobs").symlink_to(demo_home / "blobs")
    shutil.copytree(demo_home / "models", home.models, symlinks=True, dirs_exist_ok=True)
    return ServeProcess(directory, *arguments, PIP_NO_INDEX="1")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, demo_home: Path) -> Iterator[ServeProcess]:
    """A launcher for the tests that only ask something."""
    with start(tmp_path_factory.mktemp("serve"), demo_home) as serve:
        serve.wait_until_up()
        yield serve


@pytest.fixture
def serve(tmp_path: Path, demo_home: Path) -> Iterator[ServeProcess]:
    """A launcher that a test may end."""
    with start(tmp_path, demo_home) as serve:
        serve.wait_until_up()
        yield serve


def engine(serve: ServeProcess) -> int:
    """The process id of the built-in engine."""
    return next(pid for pid in serve.family() if "app.engines.builtin" in command_line(pid))


def begin_chat(serve: ServeProcess) -> RawClient:
    """A client that waits for a very long answer, on which the engine is at work."""
    client = RawClient(serve.url)
    body = to_bytes({**HELLO, "max_tokens": 4000, "ignore_eos": True})
    client.send(f"POST {CHAT} HTTP/1.1\r\nHost: {client.host}\r\nContent-Length: {len(body)}\r\n"
                "Content-Type: application/json\r\n\r\n".encode() + body)
    found = re.search(r"--port (\d+)", command_line(engine(serve)))
    assert found
    slots = f"http://127.0.0.1:{found[1]}"
    wait_until(lambda: any(slot["is_processing"] for slot in get(slots, "/slots").json()), "work")
    return client


def test_the_printed_line_works_when_pasted(shared: ServeProcess) -> None:
    """The line it prints is answered by the model, within a few tokens."""
    done = subprocess.run(shared.wait_until_up(), shell=True, capture_output=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["model"] == ALIAS
    assert answer["choices"][0]["message"]["content"].strip()
    assert answer["usage"]["completion_tokens"] <= 40


def test_it_says_where_the_log_is(shared: ServeProcess) -> None:
    """The engine's own output is in a file that is named."""
    path = next(line.removeprefix("engine log: ") for line in shared.output().splitlines()
                if line.startswith("engine log: "))
    assert "model loaded" in Path(path).read_text(encoding="utf-8", errors="replace")


def test_the_answer_is_the_engines(shared: ServeProcess) -> None:
    """What the gateway does not know, timings among it, comes through, under the model's name."""
    body = post(shared.url, CHAT, {**HELLO, "max_tokens": 8, "top_k": 1}).json()
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == body["timings"]["predicted_n"] == 8
    assert body["model"] == ALIAS


@pytest.mark.parametrize("fields,message", [
    ({"response_format": {"type": "bogus"}},
     'response_format type must be one of "text" or "json_object", but got: bogus'),
    ({"messages": [{"role": "user", "content": [{"type": "bogus"}]}]},
     "unsupported content[].type"),
])
def test_refusals_are_the_engines(shared: ServeProcess, fields: dict[str, object],
                                  message: str) -> None:
    """A request that only llama.cpp refuses is refused with its status and its own envelope."""
    answer = post(shared.url, CHAT, {**HELLO, **fields})
    assert answer.status == 400
    assert answer.json() == {
        "error": {"code": 400, "message": message, "type": "invalid_request_error"}}


def test_ctrl_c_stops_a_busy_engine(serve: ServeProcess) -> None:
    """Ctrl-C during a long answer ends gateway and engine, exit code 0."""
    family = serve.family()
    with begin_chat(serve):
        serve.process.send_signal(signal.SIGINT)
        assert serve.code() == 0
    assert len(family) == 3
    assert not [pid for pid in family if running(pid)]


def test_killing_it_leaves_nothing(serve: ServeProcess) -> None:
    """After kill -9 of the launcher during a long answer, engine, gunicorn and worker go too."""
    family = serve.family()
    with begin_chat(serve):
        serve.process.kill()
        wait_until_gone(family)


def test_the_death_of_the_engine_is_told(serve: ServeProcess) -> None:
    """When the engine is killed, one sentence says so, the rest is ended, the exit code is 1."""
    family = serve.family()
    os.kill(engine(serve), signal.SIGKILL)
    assert serve.code() == 1
    assert serve.last_line().startswith("the built-in engine was ended by SIGKILL: ")
    assert not [pid for pid in family if running(pid)]


def test_the_demo_model_is_preferred(tmp_path: Path, demo_home: Path) -> None:
    """Beside other models the demo model is served, and the others are said to have no engine."""
    with start(tmp_path, demo_home) as serve:
        home = RegistryHome(tmp_path / "more")
        shutil.copytree(home.add("a/first:Q4"), tmp_path / "loop" / "models" / "first")
        serve.wait_until_up()
        assert f"model: {ALIAS}\n" in serve.output()
        assert "without an engine: a/first:Q4 " in serve.output()
        listed = get(serve.url, "/v1/models").json()["data"]
    assert [model["id"] for model in listed] == [ALIAS, "a/first:Q4"]


def test_a_model_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    """An engine that ends while it loads is told with its last lines, exit code and log."""
    RegistryHome(tmp_path / "loop").add("a/first:Q4", LLAMA)
    with ServeProcess(tmp_path) as serve:
        assert serve.code() == 1
    assert "error loading model" in serve.output()
    assert serve.last_line().startswith("the built-in engine ended with exit code 1: ")
    assert "builtin-engine.log" in serve.last_line()
