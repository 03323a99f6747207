"""`scripts/serve` as it is meant: one command, and the first request for a model loads it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import ALIAS
from tests.fakes.processes import running, wait_until_gone
from tests.fakes.raw_client import RawClient
from tests.fakes.registry_home import LLAMA, RegistryHome
from tests.server.calls import CHAT, get, openai_error, post
from tests.server.engines.calling import send
from tests.server.serve_process import ServeProcess

pytestmark = pytest.mark.engine
HELLO = {"model": ALIAS, "temperature": 0, "messages": [{"role": "user", "content": "hello"}]}
HOLLOW = "a/hollow:Q4"  # a model without weights


def start(directory: Path, demo_home: Path) -> ServeProcess:
    """The launcher with the demo model and HOLLOW, and no way to download anything."""
    home = RegistryHome(directory / "loop")
    shutil.copytree(demo_home / "models", home.models, symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(home.path / "blobs")
    (home.path / "blobs").symlink_to(demo_home / "blobs")
    (directory / "hollow.gguf").write_bytes(LLAMA)
    hollow = home.directory(HOLLOW)
    hollow.mkdir()
    (hollow / "hollow.gguf").symlink_to(directory / "hollow.gguf")
    listed = [{"path": "hollow.gguf", "size": len(LLAMA), "sha256": "0" * 64}]
    home.write_manifest(hollow, json.dumps({"name": HOLLOW, "files": listed}).encode())
    return ServeProcess(directory, PIP_NO_INDEX="1")


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


def engine(serve: ServeProcess) -> dict[str, Any]:
    """What the gateway says of the demo model's engine."""
    engines = get(serve.url, "/engines").json()["engines"]
    return next(entry for entry in engines if entry["models"] == [ALIAS])


@contextmanager
def generating(serve: ServeProcess) -> Iterator[list[int]]:
    """The gateway's and the engine's processes, while the engine is at work on a long answer."""
    with RawClient(serve.url) as client:
        fields = {"stream": True, "max_tokens": 4000, "ignore_eos": True}
        answer = send(client, ALIAS, "hello", **fields).answer()
        assert next(answer.pieces())
        family = serve.family()
        assert len(family) == 4  # gunicorn and its worker, the guard and the engine
        assert engine(serve)["pid"] in family
        yield family


def test_the_printed_line_works_when_pasted(shared: ServeProcess) -> None:
    """Until it is pasted no engine runs; it is answered by the model, within a few tokens."""
    line = shared.wait_until_up()
    assert engine(shared)["pid"] is None
    done = subprocess.run(line, shell=True, capture_output=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["model"] == ALIAS
    assert answer["choices"][0]["message"]["content"].strip()
    assert answer["usage"]["completion_tokens"] <= 40
    assert engine(shared)["state"] == "ready"


def test_it_says_where_the_logs_are(shared: ServeProcess) -> None:
    """The engine's own output is in a file there."""
    post(shared.url, CHAT, {**HELLO, "max_tokens": 1})
    folder = next(line.removeprefix("engine logs: ") for line in shared.output().splitlines()
                  if line.startswith("engine logs: "))
    [log] = Path(folder).glob("*SmolLM2*.log")
    assert "model loaded" in log.read_text(encoding="utf-8", errors="replace")


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


def test_a_model_that_cannot_be_loaded_is_told(shared: ServeProcess) -> None:
    """Its first request gets the exit code and what the engine said; the gateway goes on."""
    answer = post(shared.url, CHAT, {**HELLO, "model": HOLLOW})
    assert answer.status == 503
    message = openai_error(answer)["message"]
    assert f"'{HOLLOW}' did not start: it ended with exit code 1; its last line: " in message
    assert get(shared.url, "/health").status == 200


def test_ctrl_c_stops_a_busy_engine(serve: ServeProcess) -> None:
    """Ctrl-C during a long answer ends gateway and engine, exit code 0."""
    with generating(serve) as family:
        serve.process.send_signal(signal.SIGINT)
        assert serve.code() == 0
    assert not [pid for pid in family if running(pid)]


def test_killing_it_leaves_nothing(serve: ServeProcess) -> None:
    """After kill -9 of the launcher during a long answer, engine, gunicorn and worker go too."""
    with generating(serve) as family:
        serve.process.kill()
        wait_until_gone(family)
