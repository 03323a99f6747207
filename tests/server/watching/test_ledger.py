"""Whatever happens to calls, each is logged and counted once: log, metrics and a ledger agree."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from tests.server.watching.kinds import FRAIL, Kind
from tests.server.watching.ledger import Ledger, keep

ROUNDS = int(os.environ.get("LEDGER_ROUNDS", "11"))
# Before it is known whose key it is.
KEYLESS = ("unauthorized", "host_not_allowed", "origin_not_allowed")
TWICE = {"die", "reset"}  # on a connection that was kept, which an engine may have closed before
Row = tuple[Any, ...]


def route(kind: Kind) -> str | None:
    """The rule behind the kind's path."""
    return kind.path if kind.route == "" else kind.route


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Some hundred calls of all kinds, or as many as LEDGER_ROUNDS says."""
    return keep(tmp_path_factory.mktemp("watched"), ROUNDS)


def rows(ledger: Ledger) -> Counter[Row]:
    """The ledger as the log has it."""
    return Counter(
        (k.method, route(k), k.end.status, k.end.closed_by, k.end.error, *k.end.tokens,
         k.key if k.end.error not in KEYLESS else None) for k in ledger.made)


def test_every_call_is_logged_once(ledger: Ledger) -> None:
    """With its end, and under an id of its own."""
    found = Counter((each["method"], each["route"], each["status"], each["closed_by"],
                     each["error"], each["prompt_tokens"], each["completion_tokens"],
                     each["principal"]) for each in ledger.log)
    assert found == rows(ledger)
    assert len({each["request_id"] for each in ledger.log}) == len(ledger.made)


def test_every_call_is_counted_once(ledger: Ledger) -> None:
    """By route, model and status; what only clients name is other."""
    wanted = Counter((route(k) or "other", k.end.model, str(k.end.status)) for k in ledger.made)
    found = ledger.page.by("loop_calls_total", "route", "model", "status")
    watching = {key: count for key, count in found.items() if key[0] in ("/health", "/metrics")}
    assert watching and found - Counter(watching) == wanted


@pytest.mark.parametrize(("name", "closed_by"), [
    ("loop_client_disconnects_total", "client"), ("loop_stream_errors_total", "engine")])
def test_bad_ends_are_counted_by_whose_they_are(
        ledger: Ledger, name: str, closed_by: str) -> None:
    """A client that left is no error of an engine, and the other way round."""
    wanted = Counter((route(k), k.end.model) for k in ledger.made if k.end.closed_by == closed_by)
    assert wanted and ledger.page.by(name, "route", "model") == wanted


def test_tokens_are_added_up(ledger: Ledger) -> None:
    """Of whole answers and of streams, in every API's way to tell them."""
    wanted: Counter[Row] = Counter()
    for kind in ledger.made:
        for word, tokens in zip(("prompt", "completion"), kind.end.tokens):
            wanted[kind.end.model, word] += tokens or 0
    assert ledger.page.by("loop_tokens_total", "model", "kind") == wanted


@pytest.mark.parametrize("name", ["loop_first_byte_seconds", "loop_call_seconds"])
def test_times_are_those_of_good_answers(ledger: Ledger, name: str) -> None:
    """One of each by an engine; errors would make it look fast, or slow."""
    wanted = Counter((route(k), k.end.model) for k in ledger.made
                     if k.end.engine and k.end.status < 400)
    assert ledger.page.by(f"{name}_count", "route", "model") == wanted


def test_waits_are_those_of_calls_for_engines(ledger: Ledger) -> None:
    """However they ended."""
    wanted = Counter((k.end.model,) for k in ledger.made if k.end.engine)
    assert ledger.page.by("loop_queue_wait_seconds_count", "model") == wanted


def test_engines_are_counted_as_often_as_they_were_started(ledger: Ledger) -> None:
    """Once for each time that one died, and calls have waited for each start."""
    started = sum(kind.name == FRAIL[0].name for kind in ledger.made)
    page = ledger.page
    for name, count in (("starts", started), ("loads", started), ("restarts", started - 1)):
        assert page.value(f"loop_engine_{name}_total", model="frail") == count
    assert page.value("loop_load_wait_seconds_count", model="frail") == started
    assert page.value("loop_engine_loads_total", model="broken") == 0


def test_engines_have_seen_what_is_told(ledger: Ledger) -> None:
    """Each call for one once; no other call at all."""
    wanted = Counter(k.name for k in ledger.made if k.end.engine
                     and k.end.model in ("m", "other") or k.name == "hold")
    seen = Counter(ledger.seen)
    for name in TWICE:
        assert wanted[name] <= seen.pop(name) <= 2 * wanted.pop(name)
    assert seen == wanted


def test_nothing_is_left_running(ledger: Ledger) -> None:
    """Neither requests, but the one that asks, nor calls in a slot or a queue."""
    page = ledger.page
    assert page.value("loop_calls_in_flight") == 1
    assert not page.by("loop_engine_calls", "engine") and not page.by("loop_queue_depth", "engine")


def test_bytes_and_times_make_sense(ledger: Ledger) -> None:
    """Of an answer with a body the first byte comes before the last."""
    for each in ledger.log:
        assert 0 <= each["queue_ms"] and 0 <= each["load_ms"] <= each["total_ms"]
        if each["method"] == "HEAD":
            assert (each["bytes_out"], each["first_byte_ms"]) == (0, None)
        elif each["closed_by"] != "client":
            assert each["bytes_out"] > 0 and 0 < each["first_byte_ms"] <= each["total_ms"]
