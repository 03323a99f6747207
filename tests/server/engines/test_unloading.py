"""Engines end when a request says so, as soon as no call runs, long before they have been idle."""

from __future__ import annotations

import pytest

from tests.server.calls import get, post
from tests.server.engines.calling import (
    EMBED, GENERATE, OLLAMA, PS, body, chat, crowd, ollama, streaming, streams_whole, succeeds,
    unload,
)
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine

ROUTES = [OLLAMA, GENERATE, EMBED]


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway that would keep its engines for an hour."""
    return start([
        engine(["by-generate", "by-chat"]), engine(["again", "hasty"]),
        engine("early", "--load", "0.4"),
        engine([f"once-{number}" for number in range(len(ROUTES))]),
        engine(["ollama", "not-loaded"]),
        engine([f"pinned-{number}" for number in range(len(ROUTES))], pinned=True),
    ], **{"keep-alive": "1h"})


@pytest.mark.parametrize(("number", "path"), list(enumerate(ROUTES)), ids=ROUTES)
def test_an_answer_and_then_gone(gateway: ManagedGateway, number: int, path: str) -> None:
    """A keep_alive of 0 lets the engine answer and then end."""
    model = f"once-{number}"
    fields = body(model, stream=False, keep_alive=0)
    succeeds(post(gateway.url, path, {**fields, "prompt": "id:x", "input": "id:x"}))
    ended = gateway.journal.one("terminated", model)
    assert ended.at > gateway.journal.one("end", model).at
    assert gateway.wait_for_state(model, "stopped")["last_error"] is None


@pytest.mark.parametrize(("model", "path"), [("by-generate", GENERATE), ("by-chat", OLLAMA)])
def test_unloading_waits_for_running_calls(
        gateway: ManagedGateway, model: str, path: str) -> None:
    """The answer comes at once, the stream goes on to its end, and the engine ends after it."""
    gate = gateway.directory / f"{model}.gate"
    with streaming(gateway.url, model, f"until:{gate}") as waiting:
        answer = succeeds(unload(gateway.url, model, path))
        assert answer.json()["done_reason"] == "unload"
        assert not gateway.journal.entries("terminated", model)
        gate.touch()
        assert len(streams_whole(waiting.answer)) == 3
    ended = gateway.journal.one("terminated", model)
    assert ended.at > gateway.journal.one("end", model).at
    assert model not in str(get(gateway.url, PS).json()["models"])


def test_an_unloaded_model_is_loaded_again(gateway: ManagedGateway) -> None:
    """By the next call, in another process."""
    for count in (1, 2):
        succeeds(chat(gateway.url, "again"))
        assert unload(gateway.url, "again").status == 200
        ended = gateway.journal.wait_for("terminated", "again", count=count)
    assert len({entry.pid for entry in ended}) == 2


def test_a_call_comes_while_the_engine_is_ending(gateway: ManagedGateway) -> None:
    """It is answered, be it by the one that was to end or by the next one; the last one ends."""
    for _ in range(4):
        succeeds(chat(gateway.url, "hasty"))
        assert unload(gateway.url, "hasty").status == 200
    gateway.wait_for_state("hasty", "stopped")
    started, ended = (gateway.journal.entries(what, "hasty") for what in ("started", "terminated"))
    assert {entry.pid for entry in started} == {entry.pid for entry in ended}


def test_unloading_what_is_starting(gateway: ManagedGateway) -> None:
    """Does not take the engine away from the call that it was started for."""
    with crowd(gateway.url) as calls:
        waiting = calls.chat("early")
        gateway.journal.wait_for("started", "early")
        assert unload(gateway.url, "early").status == 200
        succeeds(waiting.result())
    gateway.journal.one("terminated", "early")


def test_an_answer_that_began_before_keeps_nothing(gateway: ManagedGateway) -> None:
    """The end of an Ollama stream does not bring the usual time back."""
    gate = gateway.directory / "ollama.gate"
    with crowd(gateway.url) as calls:
        running = calls.ask(ollama, "ollama", f"until:{gate}", stream=True)
        gateway.journal.one("begin", "ollama")
        assert unload(gateway.url, "ollama").status == 200
        gate.touch()
        assert running.result().body.rstrip().endswith(b"}")
    gateway.journal.one("terminated", "ollama")


def test_unloading_what_is_not_loaded(gateway: ManagedGateway) -> None:
    """Does not shorten the life of the engine that the next call starts."""
    assert unload(gateway.url, "not-loaded").json()["done_reason"] == "unload"
    for _ in range(2):
        succeeds(chat(gateway.url, "not-loaded"))
    found = gateway.engine("not-loaded")
    assert (found["state"], found["starts"]) == ("ready", 1)


@pytest.mark.parametrize(("number", "path"), list(enumerate(ROUTES)), ids=ROUTES)
def test_a_pinned_engine_is_unloaded_too(
        gateway: ManagedGateway, number: int, path: str) -> None:
    """After the call that runs; the next one starts it again, and then it is pinned again."""
    model = f"pinned-{number}"
    gate = gateway.directory / f"{model}.gate"
    with streaming(gateway.url, model, f"until:{gate}") as waiting:
        assert unload(gateway.url, model, path).status == 200
        assert gateway.engine(model)["state"] == "ready"
        gate.touch()
        assert len(streams_whole(waiting.answer)) == 3
    gateway.journal.one("terminated", model)
    assert gateway.wait_for_state(model, "stopped")["pid"] is None
    succeeds(post(gateway.url, OLLAMA, body(model, stream=False, keep_alive=0)))
    succeeds(chat(gateway.url, model))
    found = gateway.engine(model)
    assert (found["state"], found["starts"], found["idle_until"]) == ("ready", 2, None)
