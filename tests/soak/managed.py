"""Failures of engines that the gateway starts, and new configurations, many times over."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.fakes.processes import wait_until
from tests.server.engines.calling import chat, succeeds, unload
from tests.server.engines.managed_gateway import ManagedGateway, engine
from tests.server.running.changing import reload

ROUNDS = 20


def gateway_at(directory: Path) -> ManagedGateway:
    """A gateway that starts an engine for `m`, and in vain one for `broken`."""
    return ManagedGateway(directory, [engine("m"), engine("broken", "--exit", "3")])


def managed_failures(gateway: ManagedGateway) -> Iterator[str]:
    """Make each kind of failure twenty times; its name, once it is over and `m` is there again."""
    for name, prompt, stream in (("before its answer", "crash:0", False),
                                 ("in a stream", "crash:2", True)):
        for _ in range(ROUNDS):
            chat(gateway.url, "m", prompt, stream=stream)
            succeeds(chat(gateway.url, "m"))
        yield f"an engine crashes {name}"
    for _ in range(ROUNDS):
        for pid in gateway.programs("m"):
            os.kill(pid, signal.SIGKILL)
        gateway.wait_for_state("m", "failed")
        succeeds(chat(gateway.url, "m"))
    yield "an engine is killed"
    for _ in range(ROUNDS):
        assert unload(gateway.url, "m").status == 200
        gateway.wait_for_state("m", "stopped")
        succeeds(chat(gateway.url, "m"))
    yield "an engine is unloaded"
    for _ in range(ROUNDS):
        assert chat(gateway.url, "broken").status == 503
    yield "an engine does not start"
    for number in range(ROUNDS):
        entries = [engine("m", slots=1 + number % 2), engine("broken", "--exit", "3")]
        reload(gateway, engines=[each.setting(gateway.directory) for each in entries])
        succeeds(chat(gateway.url, "m"))
        wait_until(lambda: len(gateway.programs("m")) == 1, "the end of the one before")
    yield "the configuration changes"
