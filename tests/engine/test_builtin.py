"""The built-in engine serves one model under its alias, and ends when it is told to."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from app.catalog.facts import FactsCache
from app.catalog.registry import Registry
from app.engines.context import memory_of
from tests.engine.conftest import ALIAS
from tests.engine.engine_process import ROOT, EngineProcess
from tests.fakes.processes import descendants, wait_until_gone
from tests.fakes.raw_client import RawAnswer, RawClient, fetch
from tests.server.calls import CHAT, JSON, get, post, to_bytes

pytestmark = pytest.mark.engine
# A parent that starts the engine, says so and waits.
PARENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
if child.stdout.readline():
    print("up", flush=True)
sys.stdin.read()
"""


def chat(**fields: Any) -> dict[str, Any]:
    """The body of a chat with the model."""
    hello = [{"role": "user", "content": "hello"}]
    return {"model": ALIAS, "temperature": 0, "messages": hello, **fields}


def resident(pid: int) -> int:
    """Bytes of a process that are in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def streaming(own_engine: EngineProcess) -> Iterator[RawAnswer]:
    """The answer to a long chat, of which a first piece has arrived."""
    with RawClient(own_engine.url) as client:
        body = to_bytes(chat(stream=True, max_tokens=4000, ignore_eos=True))
        answer = client.request("POST", CHAT, [("Host", client.host), *JSON], body)
        next(answer.pieces())
        yield answer


def test_it_is_healthy(shared_engine: EngineProcess) -> None:
    """Once it says where it serves, /health answers 200."""
    assert get(shared_engine.url, "/health").json() == {"status": "ok"}


def test_a_chat_is_answered_under_the_alias(shared_engine: EngineProcess) -> None:
    """The answer names the alias, stops after the tokens asked for, and carries timings."""
    answer = post(shared_engine.url, CHAT, chat(max_tokens=8, top_k=1, cache_prompt=False))
    body = answer.json()
    assert answer.status == 200
    assert sorted(body) == ["choices", "created", "id", "model", "object", "system_fingerprint",
                            "timings", "usage"]
    assert body["model"] == ALIAS
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == body["timings"]["predicted_n"] == 8


@pytest.mark.parametrize("words", [1, 600])
def test_texts_are_embedded(shared_engine: EngineProcess, words: int) -> None:
    """The same server embeds texts, short ones and those it takes in pieces."""
    answer = post(shared_engine.url, "/v1/embeddings", {"model": ALIAS, "input": "sea " * words})
    assert answer.status == 200, answer.body
    assert len(answer.json()["data"][0]["embedding"]) == 576


def test_it_needs_the_memory_that_was_estimated(
        shared_engine: EngineProcess, demo_home: Path) -> None:
    """And no more, once it has had the most to do at once."""
    post(shared_engine.url, "/v1/embeddings", {"model": ALIAS, "input": "sea " * 300})
    entry = Registry(demo_home).find(ALIAS)
    assert entry
    estimated = memory_of(["builtin"], FactsCache().of_model(entry), 4)
    assert 0.75 * estimated < resident(shared_engine.process.pid) < estimated


def test_four_calls_have_a_whole_chat_each(shared_engine: EngineProcess) -> None:
    """Without --ctx there are four slots of 4096 tokens."""
    props = get(shared_engine.url, "/props").json()
    assert props["total_slots"] == 4
    assert props["default_generation_settings"]["n_ctx"] == 4096


@pytest.mark.parametrize("path", ["/metrics", "/slots"])
def test_its_load_can_be_seen(shared_engine: EngineProcess, path: str) -> None:
    """Metrics and slots are there for whoever watches the engine."""
    assert get(shared_engine.url, path).status == 200


def test_web_pages_are_not_let_in(shared_engine: EngineProcess) -> None:
    """A page of another origin gets no permission to read what the engine answers."""
    origin = [("Origin", "http://elsewhere.example")]
    answer = fetch(shared_engine.url, "GET", "/health", headers=origin)
    assert not answer.header("Access-Control-Allow-Origin")


def test_slots_share_the_context_given(demo_model: Path) -> None:
    """--ctx is the context of all --parallel slots together."""
    arguments = ["--model", str(demo_model), "--alias", "a", "--port", "0"]
    with EngineProcess(*arguments, "--ctx", "2048", "--parallel", "2") as engine:
        engine.wait_until_up()
        props = get(engine.url, "/props").json()
    assert props["total_slots"] == 2
    assert props["default_generation_settings"]["n_ctx"] == 1024


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_it_while_it_generates(
        own_engine: EngineProcess, streaming: RawAnswer, name: str) -> None:
    """Told to end in the middle of an answer, it ends with exit code 0 and the answer is cut."""
    own_engine.process.send_signal(signal.Signals[name])
    assert own_engine.code() == 0
    assert streaming.whole().cut


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_ends_it_while_it_loads(demo_model: Path, name: str) -> None:
    """Told to end while it loads, it ends by that signal, or as ever if it is through just then."""
    with EngineProcess("--model", str(demo_model), "--alias", "a", "--port", "0") as engine:
        engine.wait_for("loading model")
        engine.process.send_signal(signal.Signals[name])
        assert engine.code() in (-signal.Signals[name], 0)


def test_it_ends_with_its_parent(demo_model: Path) -> None:
    """When the process that started it is killed, it ends too."""
    engine = EngineProcess("--model", str(demo_model), "--alias", "a", "--port", "0")
    with subprocess.Popen([sys.executable, "-c", PARENT, *engine.command], cwd=ROOT,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout and parent.stdout.readline() == b"up\n"
        children = descendants(parent.pid)
        assert len(children) == 1
        parent.kill()
        wait_until_gone(children)


def test_it_outlives_the_thread_that_started_it(demo_model: Path) -> None:
    """The end of a thread of its parent is not the end of its parent."""
    engine = EngineProcess("--model", str(demo_model), "--alias", "a", "--port", "0")
    with ExitStack() as stack:
        starter = threading.Thread(target=lambda: stack.enter_context(engine).wait_until_up())
        starter.start()
        starter.join()
        with pytest.raises(subprocess.TimeoutExpired):
            engine.process.wait(1.5)  # longer than it takes to look for its parent
        assert get(engine.url, "/health").status == 200


def truncated(demo_model: Path, directory: Path) -> Path:
    """The first part of the model."""
    path = directory / "part.gguf"
    with demo_model.open("rb") as whole:
        path.write_bytes(whole.read(5_000_000))
    return path


def scribbled(demo_model: Path, directory: Path) -> Path:
    """A file that is no model."""
    path = directory / "text.gguf"
    path.write_text("once upon a time")
    return path


@pytest.mark.parametrize("make,said", [
    (lambda model, directory: directory / "none.gguf", "there is no file {model}; name a .gguf"),
    (lambda model, directory: directory, "{model} is no usable model"),
    (scribbled, "{model} is no usable model (not a GGUF file); pull it again"),
    (truncated, "llama.cpp cannot load {model}; "),
])
def test_a_bad_file_is_told(demo_model: Path, tmp_path: Path, make: Any, said: str) -> None:
    """A missing, foreign or damaged file ends it with exit code 1 and a sentence, the last line."""
    model = make(demo_model, tmp_path)
    with EngineProcess("--model", str(model), "--alias", "a", "--port", "0") as engine:
        assert engine.code() == 1
        last = engine.output().splitlines()[-1]
        assert last.startswith("builtin engine: " + said.format(model=model))
        assert "Traceback" not in engine.output()


def test_a_port_in_use_is_told(demo_model: Path) -> None:
    """A port that is taken ends it before the model is loaded, with a sentence."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ["--model", str(demo_model), "--alias", "a", "--port", str(port)]
        with EngineProcess(*arguments) as engine:
            assert engine.code() == 1
            assert engine.output() == (
                f"builtin engine: port {port} on 127.0.0.1 is in use; choose another with --port\n")


def test_a_missing_package_is_told() -> None:
    """Without llama.cpp's package it says which one is missing and how to install it."""
    program = ("import sys; sys.modules['xllamacpp'] = None; from app.engines.builtin import main; "
               "sys.exit(main(['--model', 'm', '--alias', 'a', '--port', '0']))")
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "needs the package xllamacpp" in line and "pip install -e '.[engine]'" in line
