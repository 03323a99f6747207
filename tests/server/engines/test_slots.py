"""An engine answers as many calls at a time as it has slots; the others wait their turn."""

from __future__ import annotations

from functools import partial

import pytest

from tests.fakes.raw_client import RawClient
from tests.server.calls import get, post
from tests.server.engines.calling import (
    chat, crowd, ollama, send, streaming, streams_whole, succeeds, together,
)
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine
from tests.server.stream.leaving import LEAVING

SLOTS = {"set": 2, "told": 3, "single": 1, "filled": 4, "corrected": 2}
BEFORE = {"set": 2, "told": None, "filled": 4, "corrected": 4, "wide": None}
SMALL = {
    "tokenize": ("POST", "/tokenize"), "template": ("POST", "/apply-template"),
    "props": ("GET", "/props?model=asked"), "health": ("GET", "/upstream/asked/health"),
    "models": ("GET", "/upstream/asked/v1/models"),
}


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway before engines with few slots, which are configured or told by the engine."""
    return start([
        engine("set", slots=2), engine("told", "--slots", "3"), engine("single", slots=1),
        engine("asked", "--slots", "1"), engine("left", slots=1), engine("streams", slots=1),
        engine("wide"), engine("filled", "--parallel", "{slots}"),
        engine("corrected", "--parallel={slots}", "--slots", "2"),
    ])


def test_before_a_start_the_command_counts(gateway: ManagedGateway) -> None:
    """As long as no engine has told anything: what is configured, or was written for {slots}."""
    assert {model: gateway.engine(model)["slots"] for model in BEFORE} == BEFORE


@pytest.mark.parametrize("model", SLOTS)
def test_no_more_calls_run_than_there_are_slots(gateway: ManagedGateway, model: str) -> None:
    """All slots are used, none is used twice, and all calls are answered."""
    kinds = [partial(chat, gateway.url, model, "answer:0.1"),
             partial(chat, gateway.url, model, "answer:0.1", stream=True),
             partial(ollama, gateway.url, model, "answer:0.1")]
    for answer in together(*kinds * 3):
        succeeds(answer)
    assert gateway.journal.most_at_once(model) == SLOTS[model]
    found = gateway.engine(model)
    assert (found["slots"], found["running"], found["queued"]) == (SLOTS[model], 0, 0)


def test_without_a_number_there_is_no_bound(gateway: ManagedGateway) -> None:
    """An engine that tells none, and was told none, gets all calls at once."""
    gate = gateway.directory / "wide.gate"
    with crowd(gateway.url) as calls:
        waiting = [calls.chat("wide", f"until:{gate}") for _ in range(12)]
        gateway.journal.wait_for("begin", "wide", count=12)
        gate.touch()
        for future in waiting:
            succeeds(future.result())
    assert gateway.engine("wide")["slots"] is None


@pytest.mark.parametrize("question", SMALL)
def test_small_questions_need_no_slot(gateway: ManagedGateway, question: str) -> None:
    """They are answered while the only slot is taken."""
    method, path = SMALL[question]
    gate = gateway.directory / f"{question}.gate"
    with streaming(gateway.url, "asked", f"until:{gate}") as waiting:
        for _ in range(3):
            answer = (get(gateway.url, path) if method == "GET"
                      else post(gateway.url, path, {"model": "asked", "content": "x"}))
            assert answer.status == 200, answer.body
        assert gateway.engine("asked")["running"] == 1
        gate.touch()
        assert streams_whole(waiting.answer)


def test_a_stream_keeps_its_slot_to_the_end(gateway: ManagedGateway) -> None:
    """The next call begins after the last event."""
    gate = gateway.directory / "streams.gate"
    with streaming(gateway.url, "streams", f"id:first until:{gate}") as waiting, \
            crowd(gateway.url) as calls:
        second = calls.chat("streams", "id:second", stream=True)
        gateway.wait_for_queue("streams", 1)
        assert gateway.journal.order("begin", "streams") == ["first"]
        gate.touch()
        assert streams_whole(waiting.answer) and streams_whole(second.result())
    first_end = gateway.journal.one("end", "streams", "first").at
    assert first_end < gateway.journal.one("begin", "streams", "second").at


@pytest.mark.parametrize("name", LEAVING)
def test_who_leaves_the_queue_is_never_served(gateway: ManagedGateway, name: str) -> None:
    """Nor counted; those behind are served in its place."""
    gate = gateway.directory / f"left-{name}.gate"
    with crowd(gateway.url) as calls, RawClient(gateway.url) as client:
        first = calls.chat("left", f"id:first-{name} until:{gate}")
        gateway.journal.wait_for("begin", "left", f"first-{name}")
        send(client, "left", f"id:gone-{name}")
        gateway.wait_for_queue("left", 1)
        behind = calls.chat("left", f"id:behind-{name}")
        gateway.wait_for_queue("left", 2)
        LEAVING[name](client)
        gateway.wait_for_queue("left", 1)
        gate.touch()
        succeeds(first.result())
        succeeds(behind.result())
    assert not gateway.journal.entries(id=f"gone-{name}")
    assert gateway.journal.order("end", "left")[-2:] == [f"first-{name}", f"behind-{name}"]


def test_who_leaves_a_slot_gives_it_back(gateway: ManagedGateway) -> None:
    """The engine sees its client go, and the next call is served."""
    with streaming(gateway.url, "single", "id:leaver silent:1"):
        gateway.journal.one("begin", "single", "leaver")
    gateway.journal.wait_for("left", "single", "leaver")
    succeeds(chat(gateway.url, "single"))
