"""Engines that do not start: whoever waits is told why at once, and nobody tries in a hurry."""

from __future__ import annotations

import re
import time

import pytest

from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.server.calls import ollama_error
from tests.server.engines.calling import (
    chat, crowd, not_ready, ollama, retry_after, send, succeeds, together,
)
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import PROGRAM, ManagedGateway, engine

PAPER = "engine: out of paper"


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway whose engines fail, each in its own way, while a file of that name is there."""
    failing = ("--exit", "3", "--say", PAPER)
    found = start([
        engine("together", "--load", "0.4", *failing),
        engine("mended", *failing, "--fail-if-exists", "@cause"),
        engine("hopeless", *failing),
        engine("speechless", "--exit", "9"),
        engine("hanging", "--hang", "--child", "--stray", start_timeout="500ms"),
        engine("loading", "--loading", "--hang", start_timeout="500ms"),
        engine("elsewhere", "--elsewhere", start_timeout="500ms"),
        engine("good", "--load", "0.4"),
        {"command": ["/nowhere/secret-program", "{port}"], "models": ["missing"]},
    ])
    (found.directory / "cause").touch()
    return found


def tells_nothing_of_the_command(text: str) -> None:
    """Assert that no part of the command line is in it, where passwords may stand."""
    assert not re.search(r"engine_command|--journal|--port|--say|secret-program", text), text
    assert PROGRAM not in text


def test_all_waiters_are_told_at_once(gateway: ManagedGateway) -> None:
    """One start for five; each gets the exit code and the engine's last line."""
    openai, native = lambda: chat(gateway.url, "together"), lambda: ollama(gateway.url, "together")
    answers = together(openai, openai, openai, native, native)
    texts = [not_ready(answer) for answer in answers[:3]]
    for answer in answers[3:]:
        assert answer.status == 503 and retry_after(answer) >= 1
        texts.append(ollama_error(answer))
    for text in texts:
        assert PAPER in text and re.search(r"\b3\b", text), text
        tells_nothing_of_the_command(text)
    assert len(gateway.journal.entries("started", "together")) == 1


def test_a_stream_is_told_by_its_status(gateway: ManagedGateway) -> None:
    """A stream that cannot begin is a 503 like any other, never a 200 with an error in it."""
    message = not_ready(chat(gateway.url, "speechless", stream=True))
    assert re.search(r"\b9\b", message), message
    tells_nothing_of_the_command(message)


def test_the_next_call_tries_again(gateway: ManagedGateway) -> None:
    """And succeeds when the cause is gone, though it may have to wait a moment."""
    assert PAPER in not_ready(chat(gateway.url, "mended"))
    (gateway.directory / "cause").unlink()
    succeeds(chat(gateway.url, "mended"))
    first, second = gateway.journal.entries("started", "mended")
    assert second.at - first.at >= 0.95
    succeeds(chat(gateway.url, "mended"))
    assert len(gateway.journal.entries("started", "mended")) == 2


def test_there_is_no_tight_loop(gateway: ManagedGateway) -> None:
    """Pauses of 1 s, 2 s and more lie between starts; while they are long, calls are refused."""
    while len(gateway.journal.entries("started", "hopeless")) < 3:
        assert PAPER in not_ready(chat(gateway.url, "hopeless"))
    asked = time.monotonic()
    answers: list[RawAnswer] = together(*[lambda: chat(gateway.url, "hopeless")] * 10)
    assert time.monotonic() - asked < 1.9
    for answer in answers:
        assert PAPER in not_ready(answer)
        assert 2 <= retry_after(answer) <= 4
    one, two, three = (entry.at for entry in gateway.journal.entries("started", "hopeless"))
    assert two - one >= 0.95 and three - two >= 1.95


@pytest.mark.parametrize("model", ["hanging", "loading", "elsewhere"])
def test_a_start_that_takes_too_long_is_ended(gateway: ManagedGateway, model: str) -> None:
    """With all that it started, and its waiters are told."""
    with crowd(gateway.url) as calls:
        waiting = [calls.chat(model) for _ in range(3)]
        started = gateway.journal.one("started", model)
        wait_until(lambda: gateway.programs(model), "the process")
        for future in waiting:
            message = not_ready(future.result())
            tells_nothing_of_the_command(message)
    wait_until(lambda: not gateway.programs(model), "the end of it")
    assert len(gateway.journal.entries("started", model)) == 1
    if model == "elsewhere":
        other = gateway.journal.one("ready", model).more["port"]
        assert {str(other), str(started.more["port"])} & set(re.findall(r"\d+", message)), message


def test_a_program_that_is_not_there_is_told(gateway: ManagedGateway) -> None:
    """As an engine that does not start, not as a fault of the gateway; without its name."""
    tells_nothing_of_the_command(not_ready(chat(gateway.url, "missing")))
    found = gateway.engine("missing")
    assert (found["state"], found["pid"]) == ("failed", None)
    assert found["last_error"]
    tells_nothing_of_the_command(found["last_error"])


def test_a_client_that_leaves_does_not_stop_the_start(gateway: ManagedGateway) -> None:
    """Its call is never made, and the next one finds the engine that is on its way."""
    with RawClient(gateway.url) as client:
        send(client, "good", "id:impatient")
        gateway.journal.wait_for("started", "good")
    succeeds(chat(gateway.url, "good", "id:patient"))
    assert gateway.journal.order("begin", "good") == ["patient"]
    assert len(gateway.journal.entries("started", "good")) == 1
