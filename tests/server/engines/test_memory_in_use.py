"""The budget follows what engines really take, and what the configuration says now."""

from __future__ import annotations

import pytest

from tests.fakes.processes import wait_until
from tests.server.engines.calling import chat, streaming, streams_whole, succeeds
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine
from tests.server.engines.sized_models import sized
from tests.server.running.changing import reload

MODELS = ["a", "b", "c"]
MIB = 1 << 20


@pytest.fixture(scope="module")
def lasting(start: Start) -> ManagedGateway:
    """The one gateway of these tests: it has three models of the same small size."""
    return start([engine(MODELS)], models={name: sized(4) for name in MODELS},
                 **{"min-residency": "100ms"})


@pytest.fixture
def gateway(lasting: ManagedGateway) -> ManagedGateway:
    """The gateway without a budget and without any engine."""
    reload(lasting, memory_budget=None, keep_alive="1ms")
    wait_until(lambda: not lasting.programs(), "the end of all engines")
    reload(lasting, keep_alive=None)
    return lasting


def counted(gateway: ManagedGateway) -> int:
    """What GET /engines says that all engines take; it is what each of them is said to take."""
    found = gateway.engines()
    assert found["memory_used"] == sum(max(each["memory_estimate"], each["memory"])
                                       for each in found["engines"] if each["memory"])
    return int(found["memory_used"])


def test_an_engine_counts_what_it_has_grown_to(gateway: ManagedGateway) -> None:
    """Two fit by their estimates; one that has grown makes room for the other."""
    estimate = gateway.engine("a")["memory_estimate"]
    reload(gateway, memory_budget=int(2.5 * estimate))
    succeeds(chat(gateway.url, "a"))
    assert counted(gateway) == estimate
    succeeds(chat(gateway.url, "a", f"grow:{estimate // MIB}"))
    wait_until(lambda: gateway.engine("a")["memory"] > estimate, "its growth to be seen")
    wait_until(lambda: counted(gateway) > estimate, "its growth to be counted")
    reload(gateway, memory_budget=counted(gateway) + estimate // 2)
    succeeds(chat(gateway.url, "b"))
    assert gateway.engine("a")["state"] == "stopped"
    assert counted(gateway) == estimate


def test_a_smaller_budget_ends_engines_at_once(gateway: ManagedGateway) -> None:
    """Idle ones, the least recently used first; one that runs a call goes when it has ended."""
    estimate, gate = gateway.engine("a")["memory_estimate"], gateway.directory / "gate"
    with streaming(gateway.url, "a", f"until:{gate}") as waiting:
        for model in "b", "c", "b":
            succeeds(chat(gateway.url, model))
        reload(gateway, memory_budget=int(2.5 * estimate))
        gateway.wait_for_state("c", "stopped")
        reload(gateway, memory_budget=int(0.5 * estimate))
        gateway.wait_for_state("b", "stopped")
        assert gateway.engine("a")["state"] == "ready"
        gate.touch()
        assert len(streams_whole(waiting.answer)) == 3
    gateway.wait_for_state("a", "stopped")
    assert [each.model for each in gateway.journal.entries("terminated")][-3:] == ["c", "b", "a"]
