"""Engines that break down: whose answer is lost is told, the others wait for the restart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.processes import running, wait_until_gone
from tests.fakes.sse import read_events
from tests.server.calls import openai_error
from tests.server.engines.calling import (
    chat, crowd, not_ready, ollama, streaming, streams_whole, succeeds,
)
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine
from tests.server.ollama.ndjson import failure

CRASHES = [f"crash-{number}" for number in range(4)]
SILENT = ["silent-whole", "silent-stream", "forgiven"]


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway that probes often, and waits a moment only for engines that may be silent."""
    return start([
        engine(CRASHES), engine("crowded", slots=1),
        engine(SILENT, strikes=2, read_timeout="600ms"),
        engine("sick", "--sick", "@sick", strikes=2),
        engine("busy", "--sick", "@busy", strikes=2),
        engine("short", "--fail-if-exists", "@broken", "--exit", "3", "--say", "no way"),
    ], **{"probe-interval": "150ms"})


def openai_stream(url: str, model: str) -> None:
    """A stream of two events, then one that says what happened."""
    answer = chat(url, model, "crash:2", stream=True)
    assert answer.status == 200 and not answer.cut
    events, rest = read_events(answer.body)
    assert rest == b"" and len(events) == 3
    assert [event.json()["choices"][0]["delta"]["content"] for event in events[:2]] == ["0 ", "1 "]
    assert events[2].json()["error"]["code"] == "upstream_error"


def native_stream(url: str, model: str) -> None:
    """Two lines, then one that says what happened."""
    said, text = failure(ollama(url, model, "crash:2", stream=True))
    assert [line["message"]["content"] for line in said] == ["0 ", "1 "] and text


def openai_whole(url: str, model: str) -> None:
    """An answer that is no stream."""
    answer = chat(url, model, "crash:0")
    assert (answer.status, openai_error(answer)["code"]) == (502, "upstream_error")


def native_whole(url: str, model: str) -> None:
    """The same in the other API's shape."""
    answer = ollama(url, model, "crash:0")
    assert (answer.status, list(answer.json())) == (502, ["error"])


@pytest.mark.parametrize(("model", "breaks"), list(zip(
    CRASHES, [openai_stream, native_stream, openai_whole, native_whole])))
def test_a_crash_is_told_and_the_next_call_works(
        gateway: ManagedGateway, model: str, breaks: Callable[[str, str], None]) -> None:
    """The answer that was lost is not asked for again; the next one comes from a new process."""
    succeeds(chat(gateway.url, model))
    breaks(gateway.url, model)
    succeeds(chat(gateway.url, model))
    assert len(gateway.journal.entries("crash", model)) == 1
    first, second = gateway.journal.entries("started", model)
    assert first.pid != second.pid
    assert gateway.engine(model)["pid"] == second.pid


def test_those_who_wait_are_not_lost(gateway: ManagedGateway) -> None:
    """Calls in the queue when the engine crashes are answered after its restart, streams too."""
    gate = gateway.directory / "crowded.gate"
    with crowd(gateway.url) as calls:
        doomed = calls.chat("crowded", f"id:doomed until:{gate} crash:2", stream=True)
        gateway.journal.wait_for("begin", "crowded", "doomed")
        waiting = [calls.chat("crowded", f"id:{number}", stream=number > 1) for number in range(4)]
        gateway.wait_for_queue("crowded", 4)
        gate.touch()
        assert b'"upstream_error"' in doomed.result().body
        for future in waiting:
            succeeds(future.result())
    assert len(gateway.journal.entries("started", "crowded")) == 2
    assert sorted(gateway.journal.order("end", "crowded")) == ["0", "1", "2", "3"]


def silent(gateway: ManagedGateway, model: str, stream: bool) -> None:
    """A call that the engine does not answer, or not to the end."""
    answer = chat(gateway.url, model, f"silent:{int(stream)}", stream=stream)
    if stream:
        events, _ = read_events(answer.body)
        assert events[-1].json()["error"]["code"] == "engine_timeout"
    else:
        assert (answer.status, openai_error(answer)["code"]) == (504, "engine_timeout")


@pytest.mark.parametrize("model", ["silent-whole", "silent-stream"])
def test_a_silent_engine_is_restarted(gateway: ManagedGateway, model: str) -> None:
    """After two silences in a row; the first alone is a strike."""
    silent(gateway, model, model == "silent-stream")
    first = gateway.journal.one("started", model)
    assert gateway.engine(model)["strikes"] == 1 and running(first.pid)
    silent(gateway, model, model == "silent-stream")
    wait_until_gone([first.pid])
    succeeds(chat(gateway.url, model))
    assert len(gateway.journal.entries("started", model)) == 2
    assert gateway.engine(model)["strikes"] == 0


def test_a_good_answer_ends_the_count(gateway: ManagedGateway) -> None:
    """Silences with answers between them are no reason to restart."""
    for _ in range(2):
        silent(gateway, "forgiven", False)
        succeeds(chat(gateway.url, "forgiven"))
    assert gateway.engine("forgiven")["strikes"] == 0
    assert len(gateway.journal.entries("started", "forgiven")) == 1


def test_an_engine_whose_probes_fail_is_restarted(gateway: ManagedGateway) -> None:
    """Without a call; the next one starts it again."""
    succeeds(chat(gateway.url, "sick"))
    first = gateway.journal.one("started", "sick")
    (gateway.directory / "sick").touch()
    wait_until_gone([first.pid])
    assert gateway.engine("sick")["state"] in ("stopping", "stopped", "failed")
    (gateway.directory / "sick").unlink()
    succeeds(chat(gateway.url, "sick"))
    assert len(gateway.journal.entries("started", "sick")) == 2


def test_probes_do_not_end_a_running_call(gateway: ManagedGateway) -> None:
    """However bad the engine's health is while it answers."""
    with streaming(gateway.url, "busy", "answer:1.2 events:8") as waiting:
        (gateway.directory / "busy").touch()
        assert len(streams_whole(waiting.answer)) == 8
    [first] = gateway.journal.entries("started", "busy")
    wait_until_gone([first.pid])


def test_a_crash_loop_has_pauses(gateway: ManagedGateway) -> None:
    """An engine that crashed and does not start any more tells those who wait."""
    broken = gateway.directory / "broken"
    succeeds(chat(gateway.url, "short"))
    broken.touch()
    assert b'"upstream_error"' in chat(gateway.url, "short", "crash:1", stream=True).body
    assert "no way" in not_ready(chat(gateway.url, "short"))
    broken.unlink()
    succeeds(chat(gateway.url, "short"))
    crash = gateway.journal.one("crash", "short").at
    starts = [entry.at for entry in gateway.journal.entries("started", "short")]
    assert len(starts) == 3 and starts[1] - crash >= 0.2 and starts[2] - starts[1] >= 0.4
