"""The lives of managed engines, step by step: one start for all, room, pauses, ends."""

from __future__ import annotations

import threading
import time

import pytest

from app.engines.hangup import Departure
from app.engines.unit_facts import State
from app.errors import Kind
from tests.fakes.engine_steps import reply
from tests.fakes.held_engine import settles
from tests.fakes.raw_engine import RawEngine
from tests.unit.engines.supervised import Bench, error_of


def test_however_many_wait_there_is_one_start(bench: Bench) -> None:
    """All are answered by it, and nothing runs before the first."""
    command = bench.command("m")
    assert bench.unit("m").life.state is State.STOPPED
    calls = [bench.call("m") for _ in range(10)]
    process = command.process(1)
    assert bench.state("m", State.STARTING)
    assert settles(lambda: bench.unit("m").admission.demand().waiting == 10)
    process.ready.set()
    assert [call.result(10) for call in calls] == [200] * 10
    assert len(command.started) == 1


def test_a_start_that_ends_answers_all_at_once(bench: Bench) -> None:
    """With how it ended and what it said last; the next call starts it again after the pause."""
    command = bench.command("m")
    calls = [bench.call("m") for _ in range(5)]
    first = command.process(1)
    assert settles(lambda: bench.unit("m").admission.demand().waiting == 5)
    first.end("ended with exit code 3", "no such file")
    for call in calls:
        error = error_of(call)
        assert error.kind is Kind.ENGINE_NOT_READY and error.wait == 1.0
        assert error.message == ("the engine of 'm' did not start: it ended with exit code 3; "
                                 "its last line: no such file")
    command.ready_at_once = True
    assert bench.call("m").result(10) == 200
    assert len(command.started) == 2


def test_a_start_takes_no_longer_than_its_limit(bench: Bench) -> None:
    """The process is killed then."""
    command = bench.command("m", start_timeout=0.1)
    error = error_of(bench.call("m"))
    assert "it was not ready within 0.1 s" in error.message
    assert command.process(1).stops == ["kill"]


def test_pauses_grow_and_long_ones_are_not_waited_for(bench: Bench) -> None:
    """There is at most one start for a pause."""
    command = bench.command("m")
    command.refuses = "it cannot"
    unit = bench.unit("m")
    for number in (1, 2, 3):
        assert "it cannot" in error_of(bench.call("m")).message
        assert unit.life.starts == number
        if number < 3:
            unit.life.not_before = 0.0  # as if the pause were over
    for _ in range(5):
        error = error_of(bench.call("m"))
        assert 2.0 < (error.wait or 0) <= 4.0
    assert unit.life.starts == 3


@pytest.mark.parametrize(("strangers", "answers"), [(1, True), (2, False)])
def test_a_stranger_on_the_port_means_another_port(
        bench: Bench, strangers: int, answers: bool) -> None:
    """Once; the process that could not listen is killed."""
    command = bench.command("m")
    command.strangers, command.ready_at_once = strangers, True
    call = bench.call("m")
    if answers:
        assert call.result(10) == 200
    else:
        assert "another program listens on port" in error_of(call).message
    assert len(command.started) == 2
    assert [process.stops for process in command.started[:strangers]] == [["kill"]] * strangers


def test_a_crash_restarts_for_those_who_wait(bench: Bench, answering: RawEngine) -> None:
    """The call that was running is lost with its engine; it is not sent again."""
    reached = threading.Event()

    def crash(exchange: object) -> None:
        reached.set()
        command.process(1).wait(10)
        exchange.reset()  # type: ignore[attr-defined]

    command = bench.command("m")
    command.ready_at_once = True
    answering.answer_with(crash, reply(200, b"{}"))
    running = bench.call("m")
    assert reached.wait(10)
    waiting = bench.call("m")
    assert settles(lambda: bench.unit("m").admission.demand().waiting == 1)
    command.process(1).end("was ended by SIGSEGV", "boom")
    assert error_of(running).kind is Kind.UPSTREAM_ERROR
    assert waiting.result(10) == 200
    assert len(command.started) == 2
    assert bench.unit("m").life.error == (
        "the engine of 'm' was ended by SIGSEGV; its last line: boom")


def test_one_makes_room_for_another(bench: Bench) -> None:
    """Only when it is gone does the other one start."""
    one, other = bench.command("a", size=2), bench.command("b", size=2)
    one.ready_at_once = other.ready_at_once = True
    assert bench.call("a").result(10) == 200
    first = one.process(1)
    first.may_stop.clear()
    call = bench.call("b")
    assert bench.state("a", State.STOPPING)
    assert settles(lambda: bool(first.stops)) and other.started == []
    again = bench.call("a")  # while it is stopping: it waits, and is started again
    first.may_stop.set()
    assert (call.result(10), again.result(10)) == (200, 200)
    assert (len(one.started), len(other.started)) == (2, 1)


def test_what_cannot_fit_is_refused_with_the_numbers(bench: Bench) -> None:
    """Without a start."""
    command = bench.command("big", size=5 << 20)
    error = error_of(bench.call("big"))
    assert error.kind is Kind.ENGINE_NOT_READY
    assert "needs about 5 MiB" in error.message and "memory-budget is 0 MiB" in error.message
    assert command.started == []


def test_a_client_that_leaves_during_the_start_is_not_served(
        bench: Bench, answering: RawEngine) -> None:
    """The engine comes up all the same."""
    command, departure = bench.command("m"), Departure(None)
    call = bench.call("m", departure)
    process = command.process(1)
    departure.happen()
    assert error_of(call).kind is Kind.CLIENT_GONE
    process.ready.set()
    assert bench.state("m", State.READY)
    assert answering.requests == []


@pytest.mark.parametrize("when", ["starting", "ready"])
def test_the_end_of_the_gateway_ends_all(answering: RawEngine, when: str) -> None:
    """Calls that wait are told, processes are stopped, and none is started any more."""
    bench = Bench(answering)
    command = bench.command("m")
    call = bench.call("m")
    process = command.process(1)
    if when == "ready":
        process.ready.set()
        assert call.result(10) == 200
    bench.close()
    if when == "starting":
        assert "the gateway is stopping" in error_of(call).message
    assert process.stops
    assert len(command.started) == 1


def test_unloading_waits_for_no_call(bench: Bench) -> None:
    """With a keep-alive of 0 the engine goes as soon as it is idle, and the usual time is back."""
    command = bench.command("m")
    command.ready_at_once = True
    assert bench.call("m").result(10) == 200
    bench.supervisor.keep(bench.unit("m"), 0.0, time.monotonic())
    assert bench.state("m", State.STOPPED)
    assert bench.call("m").result(10) == 200
    assert bench.unit("m").keep == 300.0
    assert len(command.started) == 2


def test_a_pinned_engine_stays(bench: Bench) -> None:
    """Whoever wants its memory is refused."""
    bench.command("p", pinned=True).ready_at_once = True
    bench.command("b", size=2).ready_at_once = True
    assert bench.call("p").result(10) == 200
    assert "of which pinned engines take" in error_of(bench.call("b")).message
    assert bench.unit("p").life.state is State.READY


@pytest.mark.parametrize("later", [False, True], ids=["from_before", "from_after"])
def test_the_last_word_counts_of_a_pinned_engine(bench: Bench, later: bool) -> None:
    """Once it is to end, a request that began before changes nothing, and a later one does."""
    bench.command("p", pinned=True).ready_at_once = True
    assert bench.call("p").result(10) == 200
    unit, before = bench.unit("p"), time.monotonic()
    with bench.running("p"):
        bench.supervisor.release(unit)
        assert not unit.pinned and unit.life.state is State.READY
        bench.supervisor.keep(unit, None, time.monotonic() if later else before)
    assert bench.state("p", State.READY if later else State.STOPPED)
    assert settles(lambda: unit.pinned)
