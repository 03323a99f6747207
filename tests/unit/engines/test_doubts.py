"""A broken connection: others are held until it is known whether the process has ended."""

from __future__ import annotations

import pytest

from app.engines import lifecycle
from app.engines.unit_facts import State
from app.errors import Kind
from tests.fakes.engine_steps import reply, reset
from tests.fakes.held_engine import settles
from tests.fakes.raw_engine import RawEngine
from tests.unit.engines.supervised import Bench, error_of

LONG = 60.0  # s; nothing waits for so long


@pytest.fixture
def broken(bench: Bench, answering: RawEngine) -> Bench:
    """A bench whose engine `m` is ready, and breaks its next answer off."""
    bench.command("m").ready_at_once = True
    assert bench.call("m").result(10) == 200
    answering.answer_with(reset, reply(200, b"{}"))
    return bench


def test_an_engine_that_lives_and_listens_gets_calls_at_once(
        broken: Bench, answering: RawEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others do not wait for the time in which a process that dies is seen to be dead."""
    monkeypatch.setattr(lifecycle, "_DOUBT", LONG)
    for _ in range(3):
        answering.answer_with(reset, reply(200, b"{}"))
        assert error_of(broken.call("m")).kind is Kind.UPSTREAM_ERROR
        assert broken.call("m").result(10) == 200
    assert len(broken.commands["m"].started) == 1


@pytest.mark.parametrize("sign", ["it listens no more", "it ends a moment later"])
def test_an_engine_that_dies_gets_no_more_calls(
        broken: Bench, answering: RawEngine, monkeypatch: pytest.MonkeyPatch, sign: str) -> None:
    """Whatever is seen of it first: calls wait for its end, and for the next process."""
    process = broken.commands["m"].process(1)
    if sign == "it listens no more":
        process.ready.clear()
        monkeypatch.setattr(lifecycle, "_DOUBT", LONG)
    else:
        monkeypatch.setattr(lifecycle, "_DYING", LONG)
    assert error_of(broken.call("m")).kind is Kind.UPSTREAM_ERROR
    before = len(answering.requests)
    call = broken.call("m")
    unit = broken.unit("m")
    assert settles(lambda: unit.admission.demand().waiting == 1)
    assert not settles(lambda: len(answering.requests) > before, patience=0.3)
    process.end("was ended by SIGSEGV")
    assert call.result(10) == 200
    assert len(broken.commands["m"].started) == 2 and unit.life.state is State.READY


def test_connections_that_break_together_are_looked_into_together(
        bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look for all, and one more for what broke in the midst of it."""
    bench.command("m").ready_at_once = True
    assert bench.call("m").result(10) == 200
    unit, looks = bench.unit("m"), list[int]()
    monkeypatch.setattr(lifecycle, "_DYING", 0.2)
    process = bench.commands["m"].process(1)
    look = process.listener
    monkeypatch.setattr(process, "listener", lambda port: (looks.append(port), look(port))[1])
    for _ in range(20):
        unit.broke(unit.client)
    assert settles(lambda: unit.alive)
    assert 1 <= len(looks) <= 2
    assert bench.call("m").result(10) == 200
