"""The fake engines and the raw client themselves: what other tests rely on."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from typing import Any

import pytest

from tests.fakes.engine_steps import (
    COMPLETION, chunks, close, head, hold, mark, refusing_url, reply, reset, send, silence, whole,
)
from tests.fakes.lesson_engine import LessonEngine
from tests.fakes.raw_client import RawClient, fetch
from tests.fakes.raw_engine import RawEngine
from tests.fakes.wire import Cut, Malformed
from tests.server.calls import CHAT, post
from tests.server.gateway_process import ROOT, free_port

COMMAND = str(ROOT / "scripts/fake-engine")
SELF_TEST = """\
200 {"id":"chatcmpl-fake","object":"chat.completion","created":1700000000,"model":"alpha",\
"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",\
"content":"alpha heard: hi"}}],"usage":{"prompt_tokens":7,"completion_tokens":5,\
"total_tokens":12},"received_fields":["model","messages","top_k"]}
400 {"error":{"code":400,"message":"fake engine returned 400","type":"server_error"}}
sleep:300 took at least 300 ms: true
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with these arguments, run to its end."""
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=20)


def test_the_self_test_prints_the_lessons_lines() -> None:
    """Three lines, byte for byte."""
    done = run("--self-test")
    assert (done.stdout, done.stderr, done.returncode) == (SELF_TEST, "", 0)


@pytest.mark.parametrize("arguments", [
    [], ["18661"], ["alpha"], ["alpha", "18661"], ["1", "a", "b"], ["-1", "a"], ["70000", "a"]])
def test_a_wrong_use_is_told_in_one_sentence(arguments: list[str]) -> None:
    """On stderr, with an exit code."""
    done = run(*arguments)
    assert done.returncode != 0 and done.stdout == ""
    assert done.stderr.startswith("fake-engine: ") and done.stderr.count("\n") == 1


def test_a_port_in_use_is_told_in_one_sentence() -> None:
    """The sentence names the port."""
    with RawEngine(reply()) as engine:
        port = engine.url.rpartition(":")[2]
        done = run(port, "alpha")
    assert done.returncode != 0
    assert done.stderr == (
        f"fake-engine: cannot listen on 127.0.0.1:{port}: Address already in use\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_quietly(number: signal.Signals) -> None:
    """Though a request is asleep in it, it ends at once and says nothing."""
    port = free_port()
    with subprocess.Popen([COMMAND, str(port), "alpha"], stderr=subprocess.PIPE) as process:
        assert process.stderr and process.stderr.readline()
        with RawClient(f"http://127.0.0.1:{port}") as client:
            client.request("GET", "/health").whole()
            client.send(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 43\r\n\r\n"
                        b'{"messages":[{"content":"sleep:100000000"}]}')
            process.send_signal(number)
            assert process.wait(10) == 0
        assert process.stderr.read() == b""


@pytest.mark.parametrize(("content", "heard"), [
    ("é 北😀 \"\\/", "é 北😀 \\\"\\\\/"), ("\n\t\x1f", "\\n\\t\\u001F"), ("\\u001f", "\\\\u001f"),
    (5, "5"), (1.5, "1.5"), (True, "true"), (None, ""), ([{"type": "text"}], ""), ({}, "")])
def test_the_engine_echoes_a_text_as_jackson_would(content: Any, heard: str) -> None:
    """Raw UTF-8, escapes only where they must be, and "" for what is no text."""
    with LessonEngine(0, "a") as engine:
        answer = post(engine.url, CHAT, {"messages": [{"role": "user", "content": content}]})
        assert answer.header("Content-Type") == "application/json; charset=utf-8"
        assert f'"content":"a heard: {heard}"'.encode() in answer.body
        assert answer.body.endswith(b'"received_fields":["messages"]}')


def test_the_engine_serves_many_at_once_on_kept_connections() -> None:
    """Sleepers do not hold up others, and a connection takes one request after another."""
    with LessonEngine(0, "a") as engine, RawClient(engine.url) as sleeper:
        sleeper.send(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 39\r\n\r\n"
                     b'{"messages":[{"content":"sleep:60000"}]}')
        with RawClient(engine.url) as client:
            for _ in range(3):
                body = json.dumps({"messages": []}).encode()
                assert client.request("POST", CHAT, (), body).whole().status == 200


def test_the_raw_engine_answers_by_script() -> None:
    """One script for each POST in turn, the last one for ever; probes use none up."""
    with RawEngine(reply(201), reply(202)) as engine, RawClient(engine.url) as client:
        statuses = [client.request(method, "/x", (), b"{}").whole().status
                    for method in ("POST", "GET", "POST", "POST")]
        assert statuses == [201, 404, 202, 202]
        assert [len(engine.requests), len(engine.probes), len(engine.connections)] == [3, 1, 1]
        assert (engine.requests[0].line, engine.requests[0].body) == ("POST /x HTTP/1.1", b"{}")


def test_the_raw_engine_waits_at_its_hold_points() -> None:
    """A test sees each piece before it lets the next one go."""
    reached, go = threading.Event(), threading.Event()
    script = [send(head(200, [("Transfer-Encoding", "chunked")])), chunks(b"a", b"b"),
              mark(reached), hold(go), chunks(b"c", b"")]
    with RawEngine(script) as engine, RawClient(engine.url) as client:
        pieces = client.request("POST", "/", (), b"").pieces()
        assert [next(pieces), next(pieces)] == [b"a", b"b"]
        assert reached.wait(10)
        go.set()
        assert list(pieces) == [b"c"]


@pytest.mark.parametrize("leave", ["end", "close", "reset"])
def test_the_raw_engine_notes_when_its_peer_leaves(leave: str) -> None:
    """Even while it says nothing and reads nothing."""
    with RawEngine(silence) as engine, RawClient(engine.url) as client:
        client.send(b"POST / HTTP/1.1\r\n\r\n")
        engine.wait_for_requests(1)
        assert not engine.connections[0].peer_closed.is_set()
        getattr(client, leave)()
        assert engine.connections[0].peer_closed.wait(10)


@pytest.mark.parametrize(("step", "was_reset"), [(close, False), (reset, True)])
def test_the_raw_client_says_that_an_answer_was_cut(step: Any, was_reset: bool) -> None:
    """What came is kept, and a reset is told from a goodbye."""
    with RawEngine([send(whole()[:-1]), step], step) as engine:
        with RawClient(engine.url) as client:
            answer = client.request("POST", "/", (), b"").whole()
            assert answer.cut and client.was_reset is was_reset
            assert COMPLETION.startswith(answer.body)
        with RawClient(engine.url) as client, pytest.raises(Cut):
            client.request("POST", "/", (), b"")


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 20 OK\r\n\r\n", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
    b"HTTP/1.1 200 OK\nA: b\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZ\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"])
def test_the_raw_client_refuses_what_is_no_http(answer: bytes) -> None:
    """A gateway that answers like this fails its test."""
    with RawEngine([send(answer), close]) as engine, pytest.raises(Malformed):
        fetch(engine.url, "POST", "/", b"")


def test_a_failing_script_fails_the_test() -> None:
    """What a script raises is raised again where the engine is left."""
    engine = RawEngine(lambda exchange: pytest.fail("wrong"))
    with pytest.raises(pytest.fail.Exception), engine, RawClient(engine.url) as client:
        with pytest.raises(Cut):
            client.request("POST", "/", (), b"")


def test_nothing_listens_at_the_refusing_url() -> None:
    """A connection is refused."""
    with pytest.raises(ConnectionRefusedError):
        fetch(refusing_url(), "GET", "/")
