"""The program that plays managed engines: what the other tests here rely on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fakes.engine_journal import EngineJournal
from tests.fakes.processes import descendants, running, wait_until, wait_until_gone
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.engine_steps import reply
from tests.server.calls import CHAT, get, post
from tests.server.engines.calling import (
    body, chat, crowd, send, streaming, streams_whole, succeeds, together,
)
from tests.server.engines.managed_gateway import PROGRAM
from tests.server.gateway_process import free_port


class Program(NamedTuple):
    """A running `engine_command`."""

    process: subprocess.Popen[str]
    url: str
    journal: EngineJournal


@contextmanager
def program(directory: Path, *options: str, model: str = "m") -> Iterator[Program]:
    """One with these options, which is killed in the end."""
    port, journal = free_port(), directory / "journal"
    command = [sys.executable, "-S", "-E", PROGRAM, "--port", str(port), "--model", model,
               "--journal", str(journal), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        try:
            yield Program(process, f"http://127.0.0.1:{port}", EngineJournal(journal))
        finally:
            process.kill()


def test_it_serves_and_keeps_a_journal(tmp_path: Path) -> None:
    """Chats, streams, embeddings and llama-server's pages; SIGTERM ends it."""
    with program(tmp_path, "--slots", "3") as found:
        journal = found.journal
        journal.wait_for("ready")
        assert succeeds(chat(found.url, "m", "id:a")).json()["choices"][0]["message"][
            "content"] == "m heard a"
        assert streams_whole(chat(found.url, "m", "id:b events:2", stream=True)) == ["0 ", "1 "]
        assert post(found.url, "/v1/embeddings", {"input": "id:c"}).json()["data"]
        assert get(found.url, "/props").json()["total_slots"] == 3
        assert get(found.url, "/health").status == get(found.url, "/v1/models").status == 200
        assert post(found.url, "/tokenize", {}).json()["tokens"]
        assert [journal.order("begin"), journal.order("end")] == [["a", "b", "c"]] * 2
        found.process.terminate()
        assert found.process.wait(10) == 0
        events = [entry.event for entry in journal.entries()]
        assert events[:3] == ["started", "beside", "ready"] and events[-1] == "terminated"


def test_connections_are_kept(tmp_path: Path) -> None:
    """One connection takes one request after another."""
    with program(tmp_path) as found:
        found.journal.wait_for("ready")
        with RawClient(found.url) as client:
            for name in "ab":
                succeeds(send(client, "m", f"id:{name}").answer().whole())
        assert found.journal.order("end") == ["a", "b"]


def test_many_calls_run_at_once(tmp_path: Path) -> None:
    """And the journal tells how many; a gate holds them back until the test opens it."""
    gate = tmp_path / "gate"
    with program(tmp_path) as found:
        found.journal.wait_for("ready")
        with crowd(found.url) as calls:
            futures = [calls.chat("m", f"until:{gate}") for _ in range(5)]
            found.journal.wait_for("begin", count=5)
            assert not found.journal.entries("end")
            gate.touch()
            assert [future.result().status for future in futures] == [200] * 5
        assert found.journal.most_at_once("m") == 5


def test_others_that_run_are_noted(tmp_path: Path) -> None:
    """An engine says beside whom it was started; one that has ended is not among them."""
    with program(tmp_path, model="a") as first, program(tmp_path, model="b") as second:
        for found in first, second:
            found.journal.wait_for("beside", count=2)
        second.process.kill()
        second.process.wait()
        with program(tmp_path, model="c") as third:
            assert third.journal.one("beside", "c").more["others"] == ["a"]
            noted = [entry.more["others"] for entry in third.journal.entries("beside")]
            assert sorted(map(len, noted[:2])) in ([0, 1], [1, 1])


@pytest.mark.parametrize("health", [404, 503])
def test_it_loads_first(tmp_path: Path, health: int) -> None:
    """Either it does not listen meanwhile, or it says 503 to whatever makes work."""
    if health == 404:
        with program(tmp_path, "--load", "0.2", "--no-health") as found:
            found.journal.wait_for("started")
            with pytest.raises(ConnectionRefusedError):
                get(found.url, "/health")
            found.journal.wait_for("ready")
            assert get(found.url, "/health").status == 404
        return
    with program(tmp_path, "--load", "0.5", "--loading") as found:
        wait_until(lambda: listens(found.url), "the engine")
        assert get(found.url, "/health").status == 503
        assert b"Loading model" in chat(found.url, "m").body
        assert get(found.url, "/v1/models").status == 200
        found.journal.wait_for("ready")
        succeeds(chat(found.url, "m"))


def listens(url: str) -> bool:
    """Whether anything does there."""
    try:
        RawClient(url).close()
    except ConnectionRefusedError:
        return False
    return True


def test_it_fails_as_told(tmp_path: Path) -> None:
    """With a code and a last line, while the cause is there."""
    cause = tmp_path / "cause"
    options = ("--exit", "3", "--say", "no paper", "--fail-if-exists", str(cause))
    cause.touch()
    with program(tmp_path, *options) as found:
        assert found.process.stdout
        assert (found.process.stdout.read(), found.process.wait(10)) == ("no paper\n", 3)
    cause.unlink()
    with program(tmp_path, *options) as found:
        found.journal.wait_for("ready")


@pytest.mark.parametrize("stays", [False, True])
def test_a_port_that_is_taken_ends_it(tmp_path: Path, stays: bool) -> None:
    """It waits for the file that lets it listen; with --stay it runs on, and never listens."""
    options = ["--after", str(tmp_path / "go"), *(["--stay"] if stays else [])]
    with program(tmp_path, *options) as found:
        port = found.journal.one("started").more["port"]
        with RawEngine(reply(), port=port):
            (tmp_path / f"go.{port}").touch()
            assert found.process.stdout
            said = found.process.stdout.readline()
            assert said == f"engine: port {port}: Address already in use\n"
            assert stays or found.process.wait(10) == 1
        assert not stays or found.process.poll() is None


def test_it_listens_elsewhere(tmp_path: Path) -> None:
    """On a port that nobody asked for."""
    with program(tmp_path, "--elsewhere") as found:
        port = found.journal.one("ready").more["port"]
        assert not found.url.endswith(f":{port}")
        assert get(f"http://127.0.0.1:{port}", "/health").status == 200


@pytest.mark.parametrize("stream", [True, False])
def test_it_crashes_in_the_middle(tmp_path: Path, stream: bool) -> None:
    """After as many events as the prompt says; what it sent before arrives."""
    with program(tmp_path) as found:
        found.journal.wait_for("ready")
        with RawClient(found.url) as client:
            send(client, "m", f"id:x crash:{2 if stream else 0}", stream=stream)
            if stream:
                answer = client.answer().whole()
                assert answer.cut and answer.body.count(b"data: ") == 2
            assert found.process.wait(10) == 7
        assert [entry.id for entry in found.journal.entries("crash")] == ["x"]


def test_it_notes_clients_that_leave(tmp_path: Path) -> None:
    """A silent one says nothing for ever, and sees when nobody listens any more."""
    with program(tmp_path) as found:
        found.journal.wait_for("ready")
        with streaming(found.url, "m", "id:x silent:1") as waiting:
            assert not found.journal.entries("left")
            waiting.client.close()
            found.journal.wait_for("left", "m", "x")


def test_its_health_can_fail(tmp_path: Path) -> None:
    """While a file is there."""
    sick = tmp_path / "sick"
    with program(tmp_path, "--sick", str(sick)) as found:
        found.journal.wait_for("ready")
        for status, change in (200, sick.touch), (500, sick.unlink), (200, sick.touch):
            assert get(found.url, "/health").status == status
            change()


def test_it_can_be_hard_to_end(tmp_path: Path) -> None:
    """It ignores SIGTERM, and has children in and outside of its process group."""
    with program(tmp_path, "--ignore-term", "--child", "--stray") as found:
        found.journal.wait_for("ready")
        children = descendants(found.process.pid)
        assert len(children) == 2
        assert sum(os.getsid(child) != os.getsid(0) for child in children) == 1
        found.process.terminate()
        found.journal.wait_for("ignored")
        assert running(found.process.pid)
        for child in children:
            os.kill(child, signal.SIGKILL)
        found.process.kill()
        wait_until_gone(children)


def test_answers_come_together(tmp_path: Path) -> None:
    """Calls that are made at once are answered in the order of the calls."""
    with program(tmp_path) as found:
        found.journal.wait_for("ready")
        answers = together(*[
            lambda name=name: post(found.url, CHAT, body("m", f"id:{name}")) for name in "abc"])
        assert [answer.json()["choices"][0]["message"]["content"][-1] for answer in answers] == [
            "a", "b", "c"]
