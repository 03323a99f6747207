"""Attached engines that refuse or fail are suspect, and healthy again once they answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.fakes.engine_steps import refusing_url, reply
from tests.fakes.processes import wait_until
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import openai_error
from tests.server.engines.calling import converse, succeeds
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, attached

CONVERSATIONS = 24
WELL = reply(200, b'{"status":"ok"}')


class Side(NamedTuple):
    """A gateway before two engines for `m`, of which the one at `late` is not there yet."""

    gateway: ManagedGateway
    late: str
    steady: RawEngine
    others: dict[str, RawEngine]


def engines_for(*names: str) -> dict[str, RawEngine]:
    """Engines of these names that are well."""
    found = {name: RawEngine(reply()) for name in names}
    for engine in found.values():
        engine.probe_script = WELL
    return found


@pytest.fixture(scope="module")
def seldom(start: Start) -> Iterator[Side]:
    """A gateway that does not probe; both engines of its model `gone` refuse."""
    with engines_for("m")["m"] as steady:
        late = refusing_url()
        gateway = start([attached(late, "m"), attached(steady.url, "m"),
                         attached(refusing_url(), "gone"), attached(refusing_url(), "gone")],
                        **{"probe-interval": "1h"})
        yield Side(gateway, late, steady, {})


@pytest.fixture(scope="module")
def often(start: Start) -> Iterator[Side]:
    """A gateway that probes every 300 ms, with two more engines."""
    others = engines_for("sickly", "idle")
    with engines_for("m")["m"] as steady, others["sickly"], others["idle"]:
        late = refusing_url()
        gateway = start([attached(late, "m"), attached(steady.url, "m"),
                         attached(others["sickly"].url, "sickly", strikes=2),
                         attached(others["idle"].url, "idle")], **{"probe-interval": "300ms"})
        yield Side(gateway, late, steady, others)


def converse_often(side: Side, count: int = CONVERSATIONS) -> None:
    """As many conversations as named, each of which is answered."""
    for number in range(count):
        succeeds(converse(side.gateway.url, f"topic {number}"))


def came_back(side: Side, late: RawEngine) -> bool:
    """Whether the engine gets a call when many are made."""
    converse_often(side, 8)
    return bool(late.requests)


@pytest.mark.parametrize("name", ["seldom", "often"])
def test_an_engine_that_refuses_is_passed_over(name: str, request: pytest.FixtureRequest) -> None:
    """Every call is answered by the other; once it is there it gets its conversations again."""
    side: Side = request.getfixturevalue(name)
    converse_often(side)
    assert len(side.steady.requests) == CONVERSATIONS
    assert side.gateway.state_of(side.late) == "suspect"
    assert side.gateway.state_of(side.steady.url) == "ready"
    with RawEngine(reply(), port=int(side.late.rpartition(":")[2])) as late:
        late.probe_script = WELL
        if name == "often":
            wait_until(lambda: side.gateway.state_of(side.late) == "ready", "a good probe")
            assert not late.requests
        else:
            wait_until(lambda: came_back(side, late), "a call on trial")
            assert side.gateway.state_of(side.late) == "ready"
        converse_often(side)
        assert len(late.requests) >= 2
        assert {request.path for request in late.probes} <= {"/health"}


def test_where_all_refuse_the_next_call_tries_again(seldom: Side) -> None:
    """A 502 each time, and an answer once one of them is there."""
    for _ in range(3):
        answer = converse(seldom.gateway.url, "hi", model="gone")
        assert (answer.status, openai_error(answer)["code"]) == (502, "engine_unavailable")
    [url, _] = [entry["id"] for entry in seldom.gateway.engines()["engines"]
                if entry["models"] == ["gone"]]
    with RawEngine(reply(), port=int(url.rpartition(":")[2])):
        succeeds(converse(seldom.gateway.url, "hi", model="gone"))


def test_failed_probes_make_an_engine_suspect(often: Side) -> None:
    """Some in a row, without a call; none is anything but GET /health, and a good one heals."""
    engine = often.others["sickly"]
    engine.probe_script = reply(500, b"{}")
    wait_until(lambda: often.gateway.state_of(engine.url) == "suspect", "two failed probes")
    assert often.gateway.engine("sickly")["strikes"] >= 2
    engine.probe_script = reply(404, b"{}")
    wait_until(lambda: often.gateway.state_of(engine.url) == "ready", "a good probe")
    assert often.gateway.engine("sickly")["strikes"] == 0
    assert {request.line for request in engine.probes} == {"GET /health HTTP/1.1"}
    assert not engine.requests


def test_what_answers_need_not_be_probed(often: Side) -> None:
    """An engine that answers calls is known to be well; one without calls is asked."""
    idle, steady = often.others["idle"], often.steady
    converse_often(often, 1)
    before, steady_before = len(idle.probes), len(steady.probes)
    while len(idle.probes) < before + 3:
        succeeds(converse(often.gateway.url, "hi"))
    assert len(steady.probes) <= steady_before + 1
