"""Another program on an engine's port gets no prompt, whatever it answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import get
from tests.server.engines.calling import PS, crowd, not_ready, succeeds
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway whose engines wait before they listen, until a test lets them."""
    return start([
        engine("exits", "--after", "@go"),
        engine("stays", "--after", "@go", "--stay", stop_timeout="500ms", start_timeout="5s"),
        engine("unlucky", "--after", "@go"),
    ])


@contextmanager
def stranger(gateway: ManagedGateway, model: str, start: int) -> Iterator[RawEngine]:
    """A server, 200 to everything, on the port of this start of the model's engine.

    It is there before the engine listens.
    """
    port = gateway.journal.wait_for("started", model, count=start)[-1].more["port"]
    with RawEngine(reply(), port=port) as found:
        found.probe_script = reply(200, b'{"status":"ok"}')
        (gateway.directory / f"go.{port}").touch()
        yield found


def let_listen(gateway: ManagedGateway, model: str, start: int) -> int:
    """Let this start of the model's engine listen on its port."""
    port = int(gateway.journal.wait_for("started", model, count=start)[-1].more["port"])
    (gateway.directory / f"go.{port}").touch()
    return port


@pytest.mark.parametrize("model", ["exits", "stays"])
def test_a_call_is_answered_through_another_port(gateway: ManagedGateway, model: str) -> None:
    """Whether the engine ends because its port is taken, or runs on without listening."""
    with crowd(gateway.url) as calls:
        waiting = calls.chat(model)
        with stranger(gateway, model, 1) as other:
            used = let_listen(gateway, model, 2)
            assert f"{model} heard" in str(succeeds(waiting.result()).json())
            assert (other.requests, other.probes) == ([], [])
            assert not other.url.endswith(f":{used}")
    assert gateway.engine(model)["url"] == f"http://127.0.0.1:{used}"


def test_two_strangers_are_too_many(gateway: ManagedGateway) -> None:
    """After a second try the call is refused, and the message names the port; the next may go."""
    with crowd(gateway.url) as calls:
        waiting = calls.chat("unlucky")
        with stranger(gateway, "unlucky", 1) as one, stranger(gateway, "unlucky", 2) as two:
            ports = {found.url.rpartition(":")[2] for found in (one, two)}
            assert ports & set(re.findall(r"\d+", not_ready(waiting.result())))
            for found in one, two:
                assert (found.requests, found.probes) == ([], [])
    assert len(gateway.journal.entries("started", "unlucky")) == 2
    names = [model["name"] for model in get(gateway.url, PS).json()["models"]]
    assert not [name for name in names if name.startswith("unlucky")]
    with crowd(gateway.url) as calls:
        waiting = calls.chat("unlucky")
        let_listen(gateway, "unlucky", 3)
        succeeds(waiting.result())
