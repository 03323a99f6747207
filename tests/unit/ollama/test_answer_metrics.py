"""The six metrics of the last line: from the engine where it measures, else counted and clocked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev
from tests.unit.ollama.answering import METRICS, chat, generate

TIMINGS = {"cache_n": 10, "prompt_n": 1, "prompt_ms": 12.5, "predicted_n": 4, "predicted_ms": 80.25}
USAGE = {"prompt_tokens": 30, "completion_tokens": 20, "total_tokens": 50}
MEASURED = {"prompt_eval_count": 11, "prompt_eval_duration": 12_500_000,
            "eval_count": 4, "eval_duration": 80_250_000}
COUNTED = {"prompt_eval_count": 30, "eval_count": 20}
# What is not measured is counted and clocked: two pieces; 102 s ready, 105 s first, 107 s end.
CLOCKED = {**METRICS, "eval_count": 2}


def ending(**facts: Any) -> bytes:
    """The event without choices that comes last."""
    return data({"choices": [], **facts})


FOUND: dict[str, tuple[list[bytes], dict[str, int]]] = {
    "nothing": ([], {}),
    "timings": ([ending(timings=TIMINGS)], MEASURED),
    "usage": ([ending(usage=USAGE)], COUNTED),
    "both": ([ending(usage=USAGE, timings=TIMINGS)], MEASURED),
    "apart": ([ending(usage=USAGE), ending(timings=TIMINGS)], MEASURED),
    "last_word_counts": ([ending(usage={"prompt_tokens": 1, "completion_tokens": 1}),
                          ending(usage=USAGE)], COUNTED),
    "null_forgets_nothing": ([ending(usage=USAGE), ending(usage=None, timings=None)], COUNTED),
    "no_cache_in_timings": ([ending(timings={"prompt_n": 5})], {"prompt_eval_count": 5}),
    "no_cache_but_usage": ([ending(timings={"prompt_n": 5}, usage=USAGE)], COUNTED),
    "cache_only": ([ending(timings={"cache_n": 5})], {"prompt_eval_count": 5}),
    "part_of_timings": ([ending(timings={"predicted_ms": 80.25}, usage=USAGE)],
                        {**COUNTED, "eval_duration": 80_250_000}),
    "zeros": ([ending(timings=dict.fromkeys(TIMINGS, 0),
                      usage={"prompt_tokens": 0, "completion_tokens": 0})], {}),
    "below_zero": ([ending(timings=dict.fromkeys(TIMINGS, -1))], {}),
    "not_numbers": ([ending(timings=dict.fromkeys(TIMINGS, "5"), usage=[1])], {}),
    "not_finite": ([ending(timings=dict.fromkeys(TIMINGS, float("nan"))),
                    ending(usage=dict.fromkeys(USAGE, float("inf")))], {}),
    "huge": ([ending(timings=dict.fromkeys(TIMINGS, 10**400), usage=dict.fromkeys(USAGE, 1e300))],
             {}),
    "fractions": ([ending(usage={"prompt_tokens": 30.0, "completion_tokens": 19.6})], COUNTED),
    "less_than_a_nanosecond": ([ending(timings={"prompt_ms": 1e-9, "predicted_ms": 1e-9})],
                               {"prompt_eval_duration": 3 * 10**9, "eval_duration": 2 * 10**9}),
}


@pytest.mark.parametrize(("events", "changed"), FOUND.values(), ids=FOUND)
def test_metrics(events: list[bytes], changed: dict[str, int]) -> None:
    """Each of the six is the best that is known of it; durations are in nanoseconds."""
    last = chat(ev("a"), ev("b"), STOP, *events, DONE)[-1]
    assert {name: last[name] for name in METRICS} == {**CLOCKED, **changed}


@pytest.mark.parametrize("place", ["finish", "word"])
def test_facts_beside_choices_count_too(place: str) -> None:
    """Engines put them on the event that ends the text, or on every event."""
    text = {"index": 0, "delta": {"content": "a"}, "finish_reason": None}
    ended = {"index": 0, "delta": {}, "finish_reason": "stop"}
    events = [data({"choices": [text], "usage": USAGE if place == "word" else None}),
              data({"choices": [ended], **({"timings": TIMINGS} if place == "finish" else {})})]
    last = chat(*events, DONE)[-1]
    expected = MEASURED if place == "finish" else COUNTED
    assert {name: last[name] for name in expected} == expected


def test_words_thoughts_and_calls_are_counted() -> None:
    """Without a word from the engine every piece of answer is a token."""
    call = {"tool_calls": [{"index": 0, "function": {"name": "f"}}]}
    events = [chunk({"reasoning": "t"}), ev("a"), chunk(call), chunk({"role": "assistant"}), STOP]
    assert chat(*events, DONE)[-1]["eval_count"] == 3


@pytest.mark.parametrize("style", ["chat", "text", "completion"])
def test_none_is_below_one(style: str) -> None:
    """Clients divide by them and fail without them, also where there was no time and no token."""
    events = [data({"content": "", "stop": True})] if style == "completion" else [DONE]
    last = generate(*events, style=style, started=5.0, loaded=5.0, monotonic=lambda: 5.0)[-1]
    assert {name: last[name] for name in METRICS} == dict.fromkeys(METRICS, 1)


def test_clock_that_is_behind() -> None:
    """A reading before the start is no negative duration."""
    last = chat(ev("a"), DONE, started=9.0, loaded=8.0, monotonic=lambda: 7.0)[-1]
    assert {name: last[name] for name in METRICS} == dict.fromkeys(METRICS, 1)


def test_answer_without_a_token() -> None:
    """All the time went into the prompt then."""
    last = chat(STOP, DONE)[-1]
    assert (last["prompt_eval_duration"], last["eval_duration"]) == (3 * 10**9, 1)


def test_only_the_last_line_has_metrics() -> None:
    """A client may take a line with counts for the last one."""
    lines = chat(ev("a"), ev("b"), STOP, ending(usage=USAGE, timings=TIMINGS), DONE)
    assert [METRICS.keys() & line.keys() for line in lines] == [set(), set(), METRICS.keys()]
