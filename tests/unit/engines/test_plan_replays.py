"""The policy on virtual time: engines load for 2 s, answer in 0.5 s, and end within 0.3 s."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from app.engines.unit_facts import Rules
from tests.fakes.engine_timeline import ANSWER, LOAD, Timeline, TimedEngine

MAX_WAIT = 60.0
STOPS = (0.3, 0.0, 0.1, 0.2)


def timeline(
    models: str, room: int, slots: int = 1, min_residency: float = 5.0, keep: float = 300.0,
) -> Timeline:
    """Engines of one size each, of which so many fit at a time."""
    engines = [TimedEngine(model, slots=slots, keep=keep) for model in models]
    return Timeline(engines, Rules(room, min_residency, MAX_WAIT), STOPS)


@pytest.mark.parametrize("min_residency", [0.1, 5.0])
@pytest.mark.parametrize("gap", [0.0, 0.1])
@pytest.mark.parametrize("slots", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [30, 45, 60])
@pytest.mark.parametrize("room", [1, 2])
def test_three_models_in_turns(
        room: int, count: int, slots: int, gap: float, min_residency: float) -> None:
    """ABCABC… starts each engine once, at most one more, and nobody waits for too long.

    That is possible because each model's calls, 20 of 0.5 s at most, are through in one turn: that
    is a third of the longest wait less the loading, 18 s.
    """
    replay = timeline("ABC", room, slots, min_residency)
    for number, model in zip(range(count), itertools.cycle("ABC")):
        replay.call(model, number * gap)
    replay.run()
    assert replay.starts <= 3 + 1
    assert replay.longest_wait <= MAX_WAIT


@pytest.mark.parametrize("slots", [1, 4])
def test_a_queue_longer_than_a_turn(slots: int) -> None:
    """A model whose turn has ended is not next again at once, though its calls came before.

    70 s of work are too much for one turn, so it has a second one after the other model's.
    """
    replay = timeline("AB", 1, slots)
    for _ in range(140 * slots):
        replay.call("A", 0.0)
    single = replay.call("B", 0.1)
    replay.run()
    assert [len(engine.starts) for engine in replay.engines.values()] == [2, 1]
    assert single.waited < MAX_WAIT / 2 + ANSWER + 0.3
    assert single.waited + ANSWER < replay.longest_wait


@pytest.mark.parametrize("gap", [0.13, 0.3, 0.45, 0.6])
@pytest.mark.parametrize("at", [1.0, 30.0, 200.0])
def test_one_call_beside_a_steady_stream(at: float, gap: float) -> None:
    """The one gets its turn within half the longest wait, the stream goes on, nobody waits long.

    The stream needs 0.5 s / `gap` of four slots: one that comes faster than 0.125 s cannot be
    served. After the interruption there have to be slots left to catch up with.
    """
    replay = timeline("AB", 1, slots=4)
    for number in range(int(400 / gap)):
        replay.call("A", number * gap)
    single = replay.call("B", at)
    replay.run()
    assert [len(engine.starts) for engine in replay.engines.values()] == [2, 1]
    assert single.waited <= MAX_WAIT / 2 + ANSWER + 0.3
    assert replay.longest_wait <= MAX_WAIT


def clients(replay: Timeline, models: str, count: int, rounds: int) -> None:
    """So many clients: each waits for its answer, then calls the next of the models."""
    def asking(position: int, left: int) -> Callable[[float], None]:
        def ask(now: float) -> None:
            if left:
                replay.call(models[position % len(models)], now, asking(position + 1, left - 1))
        return ask
    for client in range(count):
        asking(client, rounds)(0.1 * client)


@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize(("models", "room", "count"), [
    ("AB", 1, 1), ("AB", 1, 2), ("AB", 1, 5), ("ABC", 1, 1), ("ABC", 1, 6), ("ABC", 2, 1),
    ("ABC", 2, 3), ("ABCD", 2, 4), ("ABCDE", 2, 10)])
def test_clients_that_alternate(models: str, room: int, count: int, slots: int) -> None:
    """Each client's calls are all answered, none waits for too long.

    Possible as long as the turns of all the other models, at least `min_residency` and loading
    each, are less than the longest wait.
    """
    replay = timeline(models, room, slots)
    clients(replay, models, count, rounds=20)
    replay.run()
    assert len(replay.calls) == 20 * count
    assert replay.longest_wait <= MAX_WAIT


def test_clients_that_alternate_between_what_fits() -> None:
    """Nothing is stopped, and what was loaded answers at once."""
    replay = timeline("AB", 2)
    clients(replay, "AB", 1, rounds=40)
    replay.run()
    assert replay.starts == 2
    assert replay.longest_wait == 0.0


def test_alternating_calls_start_an_engine_each_and_no_more() -> None:
    """One client, room for one: every call is another model's, so every call is a start."""
    replay = timeline("AB", 1)
    clients(replay, "AB", 1, rounds=10)
    replay.run()
    assert replay.starts == 10
    assert replay.longest_wait <= 5.0 + 0.3


@pytest.mark.parametrize("room", [1, 2])
def test_steady_demand_for_more_than_fits(room: int) -> None:
    """Three models that are wanted for ten minutes take turns, and nobody waits for too long.

    Possible because two slots serve in a turn of 18 s, 72 calls, more than what comes to a model
    while all three have theirs: a call every 2 s.
    """
    replay = timeline("ABC", room, slots=2)
    for number in range(900):
        replay.call("ABC"[number % 3], number * 2.0 / 3)
    replay.run()
    assert replay.longest_wait <= MAX_WAIT
    assert {len(engine.starts) > 2 for engine in replay.engines.values()} == {True}


def test_a_large_model_gets_the_room_of_two() -> None:
    """Two small models that are wanted all the time do not keep a large one waiting for ever."""
    engines = [TimedEngine("A"), TimedEngine("B"), TimedEngine("L", memory=2)]
    replay = Timeline(engines, Rules(2, 5.0, MAX_WAIT), STOPS)
    for number in range(300):
        replay.call("AB"[number % 2], number * 0.4)
    large = replay.call("L", 10.0)
    replay.run()
    assert large.waited <= MAX_WAIT / 2
    assert replay.longest_wait <= MAX_WAIT


def test_a_small_model_that_fits_beside_waits_for_nobody() -> None:
    """It starts at once though a large one waits for another large one's turn to end."""
    engines = [TimedEngine("A", memory=8), TimedEngine("B", memory=8), TimedEngine("s")]
    replay = Timeline(engines, Rules(12, 5.0, MAX_WAIT), STOPS)
    for number in range(200):
        replay.call("A", number * 0.5)
        replay.call("B", number * 0.5 + 0.1)
    small = replay.call("s", 11.0)
    replay.run()
    assert small.granted == 11.0 + LOAD
    assert small.waited == 0.0


def test_idle_engines_are_stopped_after_their_keep_alive() -> None:
    """Counted from the end of the last call, and though nobody wants the memory."""
    replay = timeline("A", 1, keep=10.0)
    for at in (0.0, 9.0, 30.0):
        replay.call("A", at)
    replay.run()
    assert replay.engines["A"].starts == [0.0, 30.0]
    assert replay.engines["A"].turn_end == 30.0 + LOAD + ANSWER + 10.0


def test_keep_alive_zero_stops_as_soon_as_no_call_runs() -> None:
    """Even before the shortest residency; calls that are there are served first."""
    replay = timeline("A", 1, keep=0.0)
    for _ in range(3):
        replay.call("A", 0.0)
    replay.run()
    assert replay.starts == 1
    assert replay.engines["A"].turn_end == LOAD + 3 * ANSWER
