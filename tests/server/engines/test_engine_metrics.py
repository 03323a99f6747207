"""What managed engines do is on the page of metrics: states, queues, starts and their ends."""

from __future__ import annotations

import pytest

from tests.fakes.processes import wait_until
from tests.server.engines.calling import chat, crowd, not_ready, succeeds, unload
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine
from tests.server.engines.sized_models import small
from tests.server.scraping import page_of, settled

MODELS = ["busy", "crashing", "other"]


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway with room for two of these engines."""
    with_estimate = start([engine("m")], models=small(["m"]))
    budget = int(with_estimate.engine("m")["memory_estimate"] * 2.5)
    with_estimate.stop()
    return start([engine(MODELS, slots=1), engine("broken", "--exit", "3")],
                 models=small([*MODELS, "broken"]),
                 **{"memory-budget": budget, "min-residency": "100ms"})


def counts(gateway: ManagedGateway, model: str) -> tuple[int, ...]:
    """Starts, loads, restarts and evictions of the model's engine."""
    page = page_of(gateway.url)
    return tuple(int(page.value(f"loop_engine_{name}_total", model=model))
                 for name in ("starts", "loads", "restarts", "evictions"))


def state(gateway: ManagedGateway, model: str) -> str:
    """The one state that the engine is in."""
    [(found,)] = [key[1:] for key in page_of(gateway.url).by("loop_engine_state", "model", "state")
                  if key[0] == model]
    return found


def test_a_start_a_crash_and_a_restart_are_counted(gateway: ManagedGateway) -> None:
    """And an engine that is told to end is not evicted."""
    assert counts(gateway, "crashing") == (0, 0, 0, 0)
    assert state(gateway, "crashing") == "stopped"
    succeeds(chat(gateway.url, "crashing"))
    assert state(gateway, "crashing") == "ready" and counts(gateway, "crashing") == (1, 1, 0, 0)
    assert chat(gateway.url, "crashing", "crash:0").status == 502
    succeeds(chat(gateway.url, "crashing"))
    assert counts(gateway, "crashing") == (2, 2, 1, 0)
    succeeds(unload(gateway.url, "crashing"))
    gateway.wait_for_state("crashing", "stopped")
    assert counts(gateway, "crashing") == (2, 2, 1, 0)


def test_a_start_that_fails_is_no_load(gateway: ManagedGateway) -> None:
    """The difference of the two is what to alert on."""
    not_ready(chat(gateway.url, "broken"))
    assert counts(gateway, "broken") == (1, 0, 0, 0) and state(gateway, "broken") == "failed"


def test_an_eviction_is_counted(gateway: ManagedGateway) -> None:
    """Of the engine that went, and the memory is that of those which are there."""
    for model in MODELS:
        succeeds(chat(gateway.url, model))
    wait_until(lambda: state(gateway, "busy") == "stopped", "the first one to be stopped")
    assert counts(gateway, "busy") == (1, 1, 0, 1) and counts(gateway, "other")[3] == 0
    page, told = page_of(gateway.url), gateway.engines()
    assert page.value("loop_memory_used_bytes") == told["memory_used"]
    assert page.value("loop_memory_budget_bytes") == told["memory_budget"]
    sizes = page.by("loop_engine_memory_bytes", "model")
    assert set(sizes) == {("crashing",), ("other",)}


def test_queues_and_waits_are_told(gateway: ManagedGateway) -> None:
    """While calls wait, and of each how long it did."""
    succeeds(chat(gateway.url, "other"))
    before = settled(gateway.url).by("loop_queue_wait_seconds_count", "model")["other",]
    gate = gateway.directory / "gate"
    with crowd(gateway.url) as calls:
        first = calls.chat("other", f"id:first until:{gate}")
        gateway.journal.wait_for("begin", "other", "first")
        rest = [calls.chat("other") for _ in range(3)]
        gateway.wait_for_queue("other", 3)
        page = settled(gateway.url, others=4)
        gate.touch()
        for future in (first, *rest):
            succeeds(future.result())
    assert page.value("loop_queue_depth", model="other") == 3
    assert page.value("loop_engine_calls", model="other") == 1
    assert page.value("loop_engine_slots", model="other") == 1
    page = settled(gateway.url)
    assert page.by("loop_queue_wait_seconds_count", "model")["other",] == before + 4
    assert page.value("loop_load_wait_seconds_count", model="other") >= 1
