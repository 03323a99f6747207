"""Managed engines that a new configuration has no more, and those that it has again."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.engines.admission import Retired
from app.engines.making import UnitKey
from app.engines.unit_facts import State
from tests.fakes.held_engine import settles
from tests.unit.engines.supervised import MADE_OF, Bench, error_of


def only(*models: str) -> Callable[[UnitKey], bool]:
    """A configuration that has these models."""
    return lambda key: key.model in models


def ready(bench: Bench, model: str) -> None:
    """A unit that has answered a call."""
    bench.command(model, slots=2).ready_at_once = True
    assert bench.call(model).result(10) == 200


def test_an_idle_unit_ends_and_is_forgotten(bench: Bench) -> None:
    """Also one that is never stopped; another one takes its place and its address."""
    bench.command("m", pinned=True).ready_at_once = True
    assert bench.call("m").result(10) == 200
    unit = bench.unit("m")
    bench.supervisor.retain(only())
    assert bench.commands["m"].process(1).wait(10)
    assert settles(lambda: not bench.supervisor.units())
    assert bench.unit("m") is not unit and bench.unit("m").address == unit.address == "e m"


def test_running_calls_keep_a_unit(bench: Bench) -> None:
    """It is listed until they have ended, and leaves its address to a unit made anew meanwhile."""
    ready(bench, "m")
    unit, [process] = bench.unit("m"), bench.commands["m"].started
    with bench.running("m"):
        bench.supervisor.retain(only())
        assert bench.supervisor.leaving() == [unit]
        other = bench.supervisor.unit(UnitKey(MADE_OF, 1, "m"), bench.commands["m"])
        assert (other.address, unit.address) == ("e m", "e m #2")
        assert not process.stops
        assert isinstance(error_of(bench.call("m")), Retired)
    assert process.wait(10) and process.stops == ["stop"]


def test_calls_that_wait_for_a_start_go_elsewhere(bench: Bench) -> None:
    """And the start comes to nothing, without a word of failure."""
    bench.command("m")
    call = bench.call("m")
    process = bench.commands["m"].process(1)
    unit = bench.unit("m")
    bench.supervisor.retain(only("other"))
    assert isinstance(error_of(call), Retired)
    assert process.wait(10)
    assert settles(lambda: not bench.supervisor.units())
    assert (unit.life.state, unit.life.failures, unit.life.error) == (State.STOPPED, 0, None)


def test_a_unit_that_is_wanted_again_serves_on(bench: Bench) -> None:
    """As long as it is there; nothing of it has ended."""
    ready(bench, "m")
    unit, [process] = bench.unit("m"), bench.commands["m"].started
    with bench.running("m"):
        bench.supervisor.retain(only())
        bench.supervisor.claim(only("m"))
        assert bench.call("m").result(10) == 200
    assert bench.unit("m") is unit and not process.stops


def test_a_start_that_is_wanted_again_is_made_again(bench: Bench) -> None:
    """Though the first one is on its way to its end already: nobody is told of a failure."""
    bench.command("m")
    lost = bench.call("m")
    process = bench.commands["m"].process(1)
    process.may_stop.clear()
    bench.supervisor.retain(only())
    assert isinstance(error_of(lost), Retired)
    bench.supervisor.claim(only("m"))
    call = bench.call("m")
    bench.commands["m"].ready_at_once = True
    process.may_stop.set()
    assert call.result(10) == 200
    assert len(bench.commands["m"].started) == 2


def test_a_new_policy_counts_for_units_that_are_there(bench: Bench) -> None:
    """Their queue, their keep-alive and their bound."""
    ready(bench, "m")
    unit = bench.unit("m")
    bench.supervisor.keep(unit, 0.5, time.monotonic())
    bench.replace_policy(keep_alive=77.0, memory_budget=9)
    assert (unit.keep, bench.supervisor.budget) == (0.5, 9)
    bench.supervisor.keep(unit, None, time.monotonic())
    assert unit.keep == 77.0
