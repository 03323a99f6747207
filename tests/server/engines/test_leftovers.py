"""However a gateway ends, its engines end too, and all that they started."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.fakes.processes import command_line, running, wait_until, wait_until_gone, zombies
from tests.fakes.raw_client import RawClient
from tests.server.engines.calling import (
    chat, send, streaming, streams_whole, succeeds, together, unload,
)
from tests.server.engines.managed_gateway import ManagedGateway, engine

# A shell that ignores SIGTERM, as its first child does, and has the engine for its second.
STUBBORN = """#!/bin/sh
trap '' TERM
sleep 1000 &
"$@"
"""
MODELS = ["plain", "deaf", "script", "family"]
AT_ONCE = 8.0  # seconds; a second until the master is missed, two for engines that ignore SIGTERM


def entries(directory: Path) -> list[object]:
    """Engines that are hard to end, each in its own way, and one that is not."""
    script = directory / "engine.sh"
    if not script.exists():
        script.write_text(STUBBORN, encoding="utf-8")
        script.chmod(0o755)
    return [
        engine("plain"), engine("deaf", "--ignore-term", stop_timeout="300ms"),
        engine("script", wrapper=[str(script)], stop_timeout="300ms"),
        engine("family", "--ignore-term", "--child", "--stray", stop_timeout="300ms"),
        engine("slow", "--ignore-term", "--child", "--stray", "--load", "60"),
    ]


def everything(gateway: ManagedGateway) -> list[int]:
    """All processes of the gateway, once each of its engines has answered."""
    for answer in together(*[partial(chat, gateway.url, model) for model in MODELS]):
        succeeds(answer)
    family = gateway.family()
    # Two of gunicorn's, the engines, the shell, and three that sleep.
    assert len(family) >= 2 + len(MODELS) + 4
    return family


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[ManagedGateway]:
    """A gateway with these engines; when it is left, nothing of it may be there."""
    with ManagedGateway(tmp_path, entries(tmp_path)) as found:
        yield found


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedGateway]:
    """Another one, for tests after which it goes on."""
    directory = tmp_path_factory.mktemp("lasting")
    with ManagedGateway(directory, entries(directory)) as found:
        yield found


def sleepers(gateway: ManagedGateway) -> set[int]:
    """The children of the engines, and that of the shell."""
    return {pid for pid in gateway.family() if command_line(pid).startswith("sleep ")}


def is_shell(pid: int) -> bool:
    """Whether the process is the shell of the script."""
    return command_line(pid).startswith("/bin/sh ")


def kill_worker(gateway: ManagedGateway) -> None:
    """SIGKILL for the one process that knows the engines."""
    [worker] = gateway.workers()
    os.kill(worker, signal.SIGKILL)


ENDS: dict[str, Callable[[ManagedGateway], object]] = {
    "sigterm": ManagedGateway.stop, "sigkill": ManagedGateway.kill}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_nothing_outlives_the_gateway(
        gateway: ManagedGateway, end: Callable[[ManagedGateway], object]) -> None:
    """Neither engines that ignore SIGTERM nor children, in whatever group or session."""
    family = everything(gateway)
    end(gateway)
    wait_until_gone(family)
    wait_until(lambda: not gateway.family(), "the end of all")


def test_a_worker_does_not_outlive_its_master(gateway: ManagedGateway) -> None:
    """Though a call runs that would go on for long: all ends at once, and the port is free."""
    family = everything(gateway)
    with streaming(gateway.url, "plain", "silent:1") as waiting:
        gateway.kill()
        assert waiting.answer.whole().cut
        wait_until(lambda: not set(family) & set(gateway.family()), "the end of all", AT_ONCE)
        socket.create_server(("127.0.0.1", gateway.port)).close()


def test_a_stop_is_no_failure(tmp_path: Path) -> None:
    """Nothing is warned of when engines end with their gateway, those that are loading too."""
    engines = [engine("m"), engine("loading", "--load", "60")]
    with ManagedGateway(tmp_path, engines) as gateway:
        succeeds(chat(gateway.url, "m"))
        with RawClient(gateway.url) as client:
            send(client, "loading", "id:x")
            gateway.journal.wait_for("started", "loading")
        gateway.stop()
        assert "WARNING" not in gateway.log()


def test_a_kill_in_the_middle_of_a_start(gateway: ManagedGateway) -> None:
    """Leaves nothing either: some engines are a moment old, others have been loading."""
    with ExitStack() as stack:
        for model in ["slow", *MODELS]:
            send(stack.enter_context(RawClient(gateway.url)), model, "silent:1", stream=True)
        gateway.journal.wait_for("started", "slow")
        gateway.kill(gateway.pid, *gateway.workers())
    wait_until(lambda: not gateway.family(), "the end of all")


def test_the_next_gateway_ends_what_is_left(tmp_path: Path) -> None:
    """Of one whose every process but the engines was killed, at the same moment."""
    with ManagedGateway(tmp_path / "first", entries(tmp_path)) as gateway:
        family = everything(gateway)
        engines = {*gateway.programs(), *sleepers(gateway)}
        keepers = [pid for pid in family if pid not in engines and not is_shell(pid)]
        assert len(keepers) >= 3  # gunicorn's two, and whatever watches over the engines
        for pid in keepers:
            os.kill(pid, signal.SIGSTOP)  # nobody sees the others go
        gateway.kill(*keepers)
        with ManagedGateway(tmp_path / "second", entries(tmp_path), home=gateway.home) as successor:
            wait_until(lambda: not gateway.family(), "the end of what was left")
            succeeds(chat(successor.url, "plain"))


def test_a_second_gateway_lets_the_first_one_be(tmp_path: Path) -> None:
    """Though both have one home: the engines of a gateway that lives are not left over."""
    with ManagedGateway(tmp_path / "first", entries(tmp_path)) as first:
        with streaming(first.url, "plain", f"until:{tmp_path / 'gate'}") as waiting:
            with ManagedGateway(tmp_path / "second", entries(tmp_path), home=first.home) as second:
                succeeds(chat(second.url, "plain"))
            (tmp_path / "gate").touch()
            assert len(streams_whole(waiting.answer)) == 3
        succeeds(chat(first.url, "plain"))
        assert len(first.journal.entries("started")) == 1


def test_a_stopped_engine_leaves_nothing(lasting: ManagedGateway) -> None:
    """No child of it, no guard and no zombie; the gateway goes on."""
    everything(lasting)
    for answer in together(*[partial(unload, lasting.url, model) for model in MODELS]):
        assert answer.status == 200
    own = [lasting.pid, *lasting.workers()]
    wait_until(lambda: sorted(lasting.family()) == sorted(own), "the end of all engines")
    wait_until(lambda: not zombies(own), "the end of the zombies")
    for model in MODELS:
        assert lasting.engine(model)["state"] == "stopped"


def test_an_engine_that_is_killed_leaves_nothing(lasting: ManagedGateway) -> None:
    """When somebody kills an engine its children go too; the next call starts it again."""
    everything(lasting)
    before = sleepers(lasting)
    os.kill(lasting.journal.entries("started", "family")[-1].pid, signal.SIGKILL)
    wait_until(lambda: len(before & sleepers(lasting)) == 1, "the end of both its children")
    succeeds(chat(lasting.url, "family"))
    assert len(sleepers(lasting)) == 3


def test_nothing_outlives_the_worker(lasting: ManagedGateway) -> None:
    """A new worker takes over, with engines of its own."""
    before = everything(lasting)
    kill_worker(lasting)
    wait_until_gone(pid for pid in before if pid != lasting.pid)
    succeeds(chat(lasting.url, "plain"))
    last = lasting.journal.entries("started", "plain")[-1]
    assert last.pid not in before and running(last.pid)
