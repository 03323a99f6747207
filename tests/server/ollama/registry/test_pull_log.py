"""How a pull ended is in the log and in the metrics: in Ollama's API its status is 200 anyway."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.fakes.hub import FakeHub, Fault
from tests.fakes.processes import wait_until
from tests.fakes.whole_gguf import LARGE, SMALL
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.registry.asking import CREATE, PULL, Registered, events_of
from tests.server.scraping import settled

CUTS = 12  # more than it tries again


def broken_streams(gateway: GatewayProcess, route: str) -> int:
    """How many have been counted, which are of no model."""
    return settled(gateway.url).by("loop_stream_errors_total", "route", "model")[route, ""]


def lines(gateway: GatewayProcess, route: str) -> list[dict[str, Any]]:
    """What the log says of requests for this route."""
    return [line for line in gateway.requests() if line["route"] == route]


def line_after(gateway: GatewayProcess, route: str, before: int) -> dict[str, Any]:
    """The line of the one request since there were so many; it comes after the answer."""
    wait_until(lambda: len(lines(gateway, route)) > before, "the line of the request")
    [line] = lines(gateway, route)[before:]
    return line


@pytest.mark.parametrize(("faults", "name", "error"), [
    ([], "org/m", None), ([], "org/nope", "unknown_model"), ([], "llama3.2", "unknown_model"),
    ([Fault("api", status=401)], "org/m", "upstream_error"),
    ([Fault("storage", status=403) for _ in range(CUTS)], "org/m", "upstream_error"),
    ([Fault("storage", body=SMALL[:-1] + b"\0")], "org/m", "upstream_error")])
@pytest.mark.parametrize("route", [PULL, CREATE])
def test_a_pull_that_breaks_off_is_no_good_call(
        hub: FakeHub, served: Registered, running_gateway: GatewayProcess, faults: list[Fault],
        name: str, error: str | None, route: str) -> None:
    """It is a stream that broke off, and the log says why; also where it is a part of a create."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    hub.faults = [Fault(fault.where, fault.status, body=fault.body) for fault in faults]
    before, logged = broken_streams(running_gateway, route), len(lines(running_gateway, route))
    answer = served.pull(name) if route == PULL else served.create("made", **{"from": name})
    assert answer.status == 200 and ("error" in events_of(answer.body)[-1]) == bool(error)
    line = line_after(running_gateway, route, logged)
    assert (line["status"], line["closed_by"], line["error"]) == (
        200, "engine" if error else "gateway", error)
    assert broken_streams(running_gateway, route) == before + bool(error)


def test_a_client_that_leaves_a_pull_is_one_that_left(
        hub: FakeHub, served: Registered, running_gateway: GatewayProcess) -> None:
    """As with every other stream."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    fault = Fault("storage", cut=1_000_000, hold=threading.Event())
    hub.faults = [fault]
    before, logged = broken_streams(running_gateway, PULL), len(lines(running_gateway, PULL))
    with served.pulling("org/m") as (client, _):
        assert fault.reached.wait(20)
        client.reset()
    line = line_after(running_gateway, PULL, logged)
    assert (line["status"], line["closed_by"], line["error"]) == (499, "client", "client_gone")
    assert broken_streams(running_gateway, PULL) == before
    assert fault.hold
    fault.hold.set()
