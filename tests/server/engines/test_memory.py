"""Engines share one budget of memory: idle ones make room, and nobody's answer is cut."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partial

import pytest

from tests.server.calls import ollama_error
from tests.server.engines.calling import (
    chat, crowd, not_ready, ollama, retry_after, streaming, streams_whole, succeeds, together,
)
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine
from tests.server.engines.sized_models import sized, small

UNITS = {"": 1, "b": 1, "bytes": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9,
         "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
PAIR = ["m", "n"]
ROUND = ["a", "b", "c"]
MANY = ["first", "second", "third", "pinned"]


@pytest.fixture(scope="module")
def estimates(start: Start) -> dict[str, int]:
    """What a gateway without a budget expects of a small and of a large model."""
    gateway = start([engine(["small", "large"])],
                    models={"small": sized(64), "large": sized(256)})
    found = {model: gateway.engine(model)["memory_estimate"] for model in ("small", "large")}
    assert gateway.engines()["memory_budget"] is None
    assert 0 < found["small"] * 1.6 < found["large"]
    return found


@pytest.fixture(scope="module")
def one(start: Start, estimates: dict[str, int]) -> ManagedGateway:
    """A gateway with room for one small engine, whose engines take a while to end."""
    slow_end = ("--load", "0.2", "--linger", "0.2")
    return start([
        engine(PAIR, *slow_end, "--answer", "0.1"), engine(ROUND, "--load", "0.4"),
        engine(["streamer", "next"], *slow_end), engine("large"),
    ], models={**small([*PAIR, *ROUND, "streamer", "next"]), "large": sized(256)},
        **{"memory-budget": int(estimates["small"] * 1.5), "min-residency": "100ms"})


@pytest.fixture(scope="module")
def two(start: Start, estimates: dict[str, int]) -> ManagedGateway:
    """A gateway with room for a pinned engine and two others, that keeps each for a second."""
    return start([engine(MANY[:3]), engine("pinned", pinned=True)], models=small(MANY),
                 **{"memory-budget": int(estimates["small"] * 3.5), "min-residency": "1s"})


def never_two(gateway: ManagedGateway) -> None:
    """Assert that no engine of this gateway was ever started beside another."""
    assert [entry for entry in gateway.journal.entries("beside") if entry.more["others"]] == []


def numbers(message: str) -> list[float]:
    """The sizes that a message names, in bytes."""
    found = re.findall(r"(\d[\d,_]*(?:\.\d+)?) ?([KMG]i?B|B|bytes)?\b", message, re.IGNORECASE)
    return [float(number.replace(",", "").replace("_", "")) * UNITS[unit.lower()]
            for number, unit in found]


@pytest.mark.parametrize("path", [chat, ollama])
def test_what_never_fits_is_refused_at_once(
        one: ManagedGateway, estimates: dict[str, int], path: Callable[..., object]) -> None:
    """With both numbers, without a start, and without an end to those that are loaded."""
    succeeds(chat(one.url, "m"))
    starts = len(one.journal.entries("started"))
    answer = chat(one.url, "large") if path is chat else ollama(one.url, "large")
    message = not_ready(answer) if path is chat else ollama_error(answer)
    assert answer.status == 503 and retry_after(answer) >= 1
    for size in estimates["large"], one.engines()["memory_budget"]:
        assert any(0.9 * size <= number <= 1.1 * size for number in numbers(message)), message
    assert one.engine("m")["state"] == "ready"
    assert len(one.journal.entries("started")) == starts


def test_two_that_do_not_fit_together_take_turns(one: ManagedGateway) -> None:
    """Five calls for each at the same moment: all are answered, and no two engines ever live."""
    answers = together(*[partial(chat, one.url, model) for model in PAIR * 5])
    for answer in answers:
        succeeds(answer)
    never_two(one)


def test_calls_for_one_engine_are_batched(one: ManagedGateway) -> None:
    """Of A, B, C, A, B, C … each engine is started once, or one of them twice."""
    before = len(one.journal.entries("started"))
    with crowd(one.url) as calls:
        waiting = []
        for number in range(18):
            model = ROUND[number % 3]
            waiting.append(calls.chat(model, f"id:{number} answer:0.1", stream=number % 2 == 0))
            if number == 0:
                one.journal.wait_for("started", "a")
        for number, future in enumerate(waiting):
            answer = succeeds(future.result())
            assert number % 2 or len(streams_whole(answer)) == 3
    assert len(one.journal.entries("started")) - before <= len(ROUND) + 1
    never_two(one)


def test_a_running_stream_is_never_cut(one: ManagedGateway) -> None:
    """Who wants its memory waits until it is over."""
    gate = one.directory / "stream.gate"
    with streaming(one.url, "streamer", f"id:long until:{gate}") as waiting, \
            crowd(one.url) as calls:
        following = calls.chat("next", "id:next")
        one.wait_for_queue("next", 1)
        assert not one.journal.entries("terminated", "streamer")
        gate.touch()
        assert len(streams_whole(waiting.answer)) == 3
        succeeds(following.result())
    end = one.journal.one("end", "streamer", "long").at
    assert end < one.journal.one("terminated", "streamer").at
    assert end < one.journal.one("started", "next").at
    never_two(one)


def test_the_least_recently_used_makes_room(two: ManagedGateway) -> None:
    """Not the oldest one, not a pinned one; and none sooner than a second after its start."""
    for model in "pinned", "first", "second", "first":
        succeeds(chat(two.url, model))
    assert {model: two.engine(model)["state"] for model in MANY} == {
        "first": "ready", "second": "ready", "third": "stopped", "pinned": "ready"}
    found = two.engines()
    assert 0 < found["memory_used"] <= found["memory_budget"]
    succeeds(chat(two.url, "third"))
    assert [entry.model for entry in two.journal.entries("terminated")] == ["second"]
    stay = two.journal.one("terminated", "second").at - two.journal.one("ready", "second").at
    assert stay >= 0.95
    others = [set(entry.more["others"]) for entry in two.journal.entries("beside", "third")]
    assert others == [{"pinned", "first"}]


def test_nobody_waits_longer_than_for_a_turn(start: Start, estimates: dict[str, int]) -> None:
    """A model that is always wanted gives way to one that is wanted once, and gets its own back."""
    gateway = start([engine(PAIR, "--load", "0.1")], models=small(PAIR), **{
        "memory-budget": int(estimates["small"] * 1.5), "min-residency": "100ms",
        "queue": {"max-wait": "3s"}})
    enough = threading.Event()
    with crowd(gateway.url) as calls:
        busy = [calls.keep_asking("m", "answer:0.15", enough) for _ in range(4)]
        gateway.journal.wait_for("begin", "m", count=4)
        succeeds(calls.chat("n", "id:rare").result())
        gateway.journal.wait_for("ready", "m", count=2)
        enough.set()
        assert all(future.result() for future in busy)
    assert len(gateway.journal.entries("started")) <= 4
    never_two(gateway)


def test_preloading_stops_where_the_budget_does(start: Start, estimates: dict[str, int]) -> None:
    """Of three that are to be there from the start two fit, and the third waits for a call."""
    gateway = start([engine(ROUND, preload=True)], models=small(ROUND),
                    **{"memory-budget": int(estimates["small"] * 2.5), "min-residency": "100ms"})
    gateway.journal.wait_for("ready", count=2)
    [late] = [model for model in ROUND if not gateway.journal.entries("started", model)]
    assert gateway.engine(late)["state"] == "stopped"
    succeeds(chat(gateway.url, late))
    assert len(gateway.journal.entries("terminated")) == 1
