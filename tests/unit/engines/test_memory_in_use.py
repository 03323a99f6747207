"""What engines really take counts, and a budget that has become too small for them is kept."""

from __future__ import annotations

from app.engines.resident import Resident
from app.engines.unit_facts import State
from tests.fakes.held_engine import HeldProcess, settles
from tests.fakes.raw_engine import RawEngine
from tests.fakes.visits import HandClock
from tests.unit.engines.supervised import Bench


def ready(bench: Bench, *models: str) -> None:
    """Engines that have answered a call each, one after the other."""
    for model in models:
        bench.command(model).ready_at_once = True
        assert bench.call(model).result(10) == 200


def test_memory_is_looked_up_once_a_second(answering: RawEngine, clock: HandClock) -> None:
    """And anew for another process, or for whoever wants it fresh."""
    process, seen = HeldProcess(1, answering), Resident(clock)
    process.resident = 5
    assert (seen.of(None), seen.of(process)) == (None, 5)
    process.resident = 6
    assert (seen.of(process), seen.of(process, fresh=0.0)) == (5, 6)
    process.resident = 7
    clock.now += 1.0
    assert seen.of(process) == 7
    assert seen.of(HeldProcess(2, answering)) == 0


def test_an_engine_counts_what_it_has_grown_to(bench: Bench) -> None:
    """Another one that would have fitted beside the estimate takes its place instead."""
    ready(bench, "a")
    bench.commands["a"].process(1).resident = 2
    assert bench.supervisor.memory_used() == 2
    assert settles(lambda: bench.unit("a").resident() == 2)
    ready(bench, "b")
    assert bench.unit("a").life.state is State.STOPPED
    assert bench.supervisor.memory_used() == 1


def test_a_smaller_budget_ends_idle_engines(bench: Bench) -> None:
    """The least recently used one, at once, though nobody wants its memory."""
    ready(bench, "a", "b")
    assert bench.call("a").result(10) == 200
    bench.replace_policy(memory_budget=1)
    bench.supervisor.retain(lambda key: True)
    assert bench.state("b", State.STOPPED)
    assert bench.unit("a").life.state is State.READY
    assert bench.unit("b").life.evictions == 1


def test_an_engine_with_a_call_goes_after_it(bench: Bench) -> None:
    """It has grown over the budget by itself, and nobody wants its memory."""
    ready(bench, "a")
    with bench.running("a"):
        bench.commands["a"].process(1).resident = 9
        assert settles(lambda: bench.unit("a").admission.watched)
        assert bench.unit("a").life.state is State.READY
    assert bench.state("a", State.STOPPED)
