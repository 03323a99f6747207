"""Whatever calls come, and however long engines take to end: the policy keeps its promises.

Memory within the budget, no running call cut off, the shortest residency: `Timeline` raises where
one of them is broken.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.engines.unit_facts import Rules
from tests.fakes.engine_timeline import Timeline, TimedEngine

MAX_WAIT = 60.0
MANY = settings(max_examples=100, deadline=None, database=None)

# Tenths of seconds between calls: many at once, now and then a pause.
GAPS = st.one_of(st.just(0), st.integers(0, 10), st.integers(0, 300))
STOPS = st.lists(st.sampled_from([0.0, 0.1, 0.3]), min_size=1, max_size=4)
ARRIVALS = st.lists(st.tuples(GAPS, st.integers(0, 3)), min_size=1, max_size=60)
RESIDENCIES = st.sampled_from([0.1, 1.0, 5.0])


def run(replay: Timeline, arrivals: list[tuple[int, int]]) -> None:
    """The calls, and all that follows."""
    models, tenths = list(replay.engines), 0
    for gap, model in arrivals:
        tenths += gap
        replay.call(models[model % len(models)], tenths / 10)
    replay.run()


@MANY
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.0, 3.0, 300.0])),
             min_size=1, max_size=4),
    st.one_of(st.none(), st.integers(1, 8)), RESIDENCIES, STOPS, ARRIVALS)
def test_any_calls_for_any_engines(
        engines: list[tuple[int, int, float]], budget: int | None, min_residency: float,
        stops: list[float], arrivals: list[tuple[int, int]]) -> None:
    """Every call is answered, but those for a model that is over the budget alone: all of them."""
    timed = [TimedEngine(str(number), memory, slots, keep)
             for number, (memory, slots, keep) in enumerate(engines)]
    replay = Timeline(timed, Rules(budget, min_residency, MAX_WAIT), stops)
    run(replay, arrivals)
    for call in replay.calls:
        fits = budget is None or replay.engines[call.model].memory <= budget
        assert (call.granted is not None, call.refused) == (fits, not fits)


@MANY
@given(st.lists(st.integers(1, 2), min_size=2, max_size=4), st.integers(0, 2), st.integers(1, 4),
       RESIDENCIES, STOPS, ARRIVALS)
def test_nobody_waits_too_long(
        sizes: list[int], spare: int, slots: int, min_residency: float, stops: list[float],
        arrivals: list[tuple[int, int]]) -> None:
    """Where that is possible: each model's calls are through in one turn.

    A turn is the longest wait by the number of models, less the loading: 13 s for four, 26 calls
    of one slot.
    """
    engines = [TimedEngine(str(number), size, slots) for number, size in enumerate(sizes)]
    replay = Timeline(engines, Rules(max(sizes) + spare, min_residency, MAX_WAIT), stops)
    count = Counter[int]()
    for gap, model in arrivals:
        count[model % len(sizes)] += 1
    assume(max(count.values()) <= 26)
    run(replay, arrivals)
    assert replay.longest_wait <= MAX_WAIT
