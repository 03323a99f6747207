"""Engines that the gateway starts itself outlive a new configuration, or end when they may."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.processes import running, wait_until, wait_until_gone
from tests.fakes.registry_home import LLAMA
from tests.server.engines.calling import (
    chat, crowd, ollama, streaming, streams_whole, succeeds,
)
from tests.server.engines.managed_gateway import Managed, ManagedGateway, engine
from tests.server.running.changing import reload

PROGRAM = Path(sys.executable).name  # of every engine here


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedGateway]:
    """The one gateway of these tests: it has models `a`, `b` and `c`, and no engine yet."""
    directory = tmp_path_factory.mktemp("managed")
    models = {name: {"model.gguf": LLAMA} for name in "abc"}
    with ManagedGateway(directory, [], models=models) as found:
        yield found


@pytest.fixture
def gateway(lasting: ManagedGateway) -> ManagedGateway:
    """The gateway without any engine, whatever the test before made of it."""
    change(lasting, memory_budget=None, keep_alive=None)
    wait_until(lambda: not lasting.programs(), "the end of all engines")
    return lasting


def change(gateway: ManagedGateway, *entries: Managed, **loop: Any) -> None:
    """Let the gateway have these engines."""
    reload(gateway, engines=[entry.setting(gateway.directory) for entry in entries], **loop)


def process_of(gateway: ManagedGateway, model: str) -> int:
    """The process of the model's engine, once it has answered a call."""
    succeeds(chat(gateway.url, model))
    return int(gateway.journal.entries("begin", model)[-1].pid)


def states(gateway: ManagedGateway) -> dict[str, str]:
    """What GET /engines calls each engine, and the state that it is in."""
    return {each["id"]: each["state"] for each in gateway.engines()["engines"]}


def gate(gateway: ManagedGateway, name: str) -> Path:
    """A file that opens a gate."""
    return gateway.directory / f"{name}.gate"


def test_an_engine_that_is_as_before_keeps_its_process(gateway: ManagedGateway) -> None:
    """Wherever its entry stands, and whichever other models that has."""
    change(gateway, engine("a"))
    process = process_of(gateway, "a")
    for entries in ([engine("b", slots=1), engine(["c", "a"])], [engine(["a", "b", "c"])],
                    [engine("a", preload=True)], [engine("*")]):
        change(gateway, *entries, aliases={"x": "a"})
        assert process_of(gateway, "a") == process
    assert len(gateway.journal.entries("started", "a")) == 1


def test_two_alike_keep_both_their_processes(gateway: ManagedGateway) -> None:
    """And of three the one that is too many ends."""
    change(gateway, *[engine("a", slots=1)] * 3)
    with crowd(gateway.url) as calls:
        held = [calls.chat("a", f"until:{gate(gateway, 'three')}") for _ in range(3)]
        wait_until(lambda: len(gateway.programs("a")) == 3, "three engines")
        wait_until(lambda: all(each["running"] for each in gateway.engines()["engines"]), "calls")
        change(gateway, engine("b"), *[engine(["a"], slots=1)] * 2)
        gate(gateway, "three").touch()
        for answer in held:
            succeeds(answer.result())
    wait_until(lambda: len(gateway.programs("a")) == 2, "the end of one")
    wait_until(lambda: len(states(gateway)) == 3, "it to be forgotten")


def test_an_engine_that_changes_ends_after_its_calls(gateway: ManagedGateway) -> None:
    """A stream goes on to its end while the new process answers; then the old one ends."""
    change(gateway, engine("a"))
    with streaming(gateway.url, "a", f"until:{gate(gateway, 'change')}") as stream:
        [old] = gateway.programs("a")
        change(gateway, engine("a", slots=3))
        new = process_of(gateway, "a")
        assert new != old and running(old)
        assert states(gateway) == {f"{PROGRAM} a": "ready", f"{PROGRAM} a #2": "stopping"}
        gate(gateway, "change").touch()
        assert len(streams_whole(stream.answer)) == 3
    wait_until_gone([old])
    wait_until(lambda: states(gateway) == {f"{PROGRAM} a": "ready"}, "the end of the old one")
    assert process_of(gateway, "a") == new


def test_an_engine_that_changes_back_is_the_same(gateway: ManagedGateway) -> None:
    """As long as its calls run, nothing of it ended."""
    change(gateway, engine("a"))
    with streaming(gateway.url, "a", f"until:{gate(gateway, 'back')}") as stream:
        [process] = gateway.programs("a")
        change(gateway)
        assert chat(gateway.url, "a").status == 404
        change(gateway, engine("a"))
        assert process_of(gateway, "a") == process
        gate(gateway, "back").touch()
        streams_whole(stream.answer)
    assert process_of(gateway, "a") == process


def test_an_idle_engine_that_goes_ends_at_once(gateway: ManagedGateway) -> None:
    """Also a pinned one, and one that was to stay for ever."""
    change(gateway, engine("a", pinned=True), engine("b"))
    pinned, kept = process_of(gateway, "a"), process_of(gateway, "b")
    succeeds(ollama(gateway.url, "b", keep_alive=-1))
    change(gateway, engine("c"))
    wait_until_gone([pinned, kept])
    wait_until(lambda: list(states(gateway)) == [f"{PROGRAM} c"], "the end of both")


def test_a_start_that_nobody_wants_any_more_ends(gateway: ManagedGateway) -> None:
    """Those who waited for it are answered by what is there instead, or told that nothing is."""
    change(gateway, engine(["a", "b"], "--load", "60"))
    with crowd(gateway.url) as calls:
        moved, lost = calls.chat("a"), calls.chat("b")
        wait_until(lambda: len(gateway.programs()) == 2, "two starts")
        old = gateway.programs()
        change(gateway, engine("a"))
        succeeds(moved.result())
        assert lost.result().status == 404
    wait_until_gone(old)
    assert "did not start" not in gateway.log()


def test_engines_that_are_to_be_there_come_with_their_configuration(
        gateway: ManagedGateway) -> None:
    """Nobody has to call."""
    change(gateway, engine("a"), engine(["b", "c"], preload=True))
    gateway.wait_for_state("b", "ready"), gateway.wait_for_state("c", "ready")
    assert gateway.engine("a")["state"] == "stopped"


def test_bounds_change(gateway: ManagedGateway) -> None:
    """How long engines stay, and what they may take together, also those that run."""
    change(gateway, engine(["a", "b"]), keep_alive="1h")
    process = process_of(gateway, "a")
    change(gateway, engine(["a", "b"]), keep_alive="1h", memory_budget="1TiB")
    assert gateway.engines()["memory_budget"] == 1024 ** 4
    assert process_of(gateway, "a") == process
    change(gateway, engine(["a", "b"]), keep_alive="200ms")
    wait_until_gone([process])
