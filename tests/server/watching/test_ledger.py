"""Whatever happens to calls, each is logged and counted once: log, metrics and a ledger agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.fakes.metrics_page import MetricsPage
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.gateway_process import GatewayProcess
from tests.server.scraping import settled
from tests.server.watching.kinds import KINDS, Kind, Scripted, make

ROUNDS = 9
Row = tuple[Any, ...]


class Ledger:
    """What was done, and what the gateway says of it."""

    def __init__(self, made: list[Kind], page: MetricsPage, log: list[dict[str, Any]]) -> None:
        self.made = made
        self.page = page
        self.log = log


def route(kind: Kind) -> str | None:
    """The rule behind the kind's path."""
    return kind.path if kind.route == "" else kind.route


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """Some hundred calls of all kinds, eight at a time."""
    home = RegistryHome(tmp_path_factory.mktemp("watched") / "home")
    home.add("m")
    script = Scripted()
    made = [kind for _ in range(ROUNDS) for kind in KINDS]
    with RawEngine(script) as engine:
        settings = {"loop": {"home": str(home.path), "read-timeout": "1s", "engines": [
            {"url": engine.url, "models": ["m", "any/*"], "kind": "openai"},
            {"url": "http://127.0.0.1:1", "models": ["gone"], "kind": "openai"}]}}
        with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as gateway:
            with ThreadPoolExecutor(8) as pool:
                statuses = list(pool.map(
                    lambda pair: make(gateway.url, pair[1], pair[0], script), enumerate(made)))
            for kind, status in zip(made, statuses):
                assert status in (None, kind.end.status), (kind, status)
            page = settled(gateway.url)
            log = [each for each in gateway.requests() if each["route"] != "/metrics"]
            yield Ledger(made, page, log)


def rows(ledger: Ledger) -> Counter[Row]:
    """The ledger as the log has it."""
    return Counter(
        (k.method, route(k), k.end.status, k.end.closed_by, k.end.error, *k.end.tokens)
        for k in ledger.made)


def test_every_call_is_logged_once(ledger: Ledger) -> None:
    """With its end, and under an id of its own."""
    found = Counter((each["method"], each["route"], each["status"], each["closed_by"],
                     each["error"], each["prompt_tokens"], each["completion_tokens"])
                    for each in ledger.log)
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


def test_bytes_and_times_make_sense(ledger: Ledger) -> None:
    """Of an answer with a body the first byte comes before the last."""
    for each in ledger.log:
        assert 0 <= each["queue_ms"] and 0 <= each["load_ms"] <= each["total_ms"]
        if each["method"] == "HEAD":
            assert (each["bytes_out"], each["first_byte_ms"]) == (0, None)
        elif each["closed_by"] != "client":
            assert each["bytes_out"] > 0 and 0 < each["first_byte_ms"] <= each["total_ms"]
