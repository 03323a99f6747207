"""What is counted of requests: exactly, by labels of a bounded number."""

from __future__ import annotations

import threading

import pytest
from prometheus_client import CollectorRegistry

from app.record import Closer, Record
from app.telemetry.exposition import MetricsPage
from app.telemetry.metrics import RequestMetrics
from tests.fakes.metrics_page import MetricsPage as Page


def page_of(counted: RequestMetrics) -> Page:
    """The page of these numbers alone."""
    registry = CollectorRegistry()
    registry.register(counted)
    return Page(MetricsPage(registry, list).made().decode())


def ended(**facts: object) -> Page:
    """The page behind one request with these facts."""
    counted = RequestMetrics()
    counted.begin()
    record = Record("POST", route="/r", model="m", known=True, engine="e", status=200)
    for name, value in facts.items():
        setattr(record, name, value)
    counted.end(record)
    return page_of(counted)


@pytest.mark.parametrize(("facts", "label"), [
    ({}, ("/r", "m")), ({"model": None}, ("/r", "")), ({"known": False}, ("/r", "other")),
    ({"route": None}, ("other", "m"))])
def test_labels_are_never_made_up_by_clients(
        facts: dict[str, object], label: tuple[str, str]) -> None:
    """What only they name is one label."""
    assert ended(**facts).by("loop_calls_total", "route", "model") == {label: 1}
    assert ended(**facts).by("loop_call_seconds_count", "route", "model") == {label: 1}


@pytest.mark.parametrize("facts", [{"status": 400}, {"status": 499}, {"engine": None}])
def test_only_good_answers_of_engines_have_times(facts: dict[str, object]) -> None:
    """An error is no answer, and a list is none of an engine."""
    page = ended(**facts)
    assert not page.by("loop_call_seconds_count") + page.by("loop_first_byte_seconds_count")
    assert bool(page.by("loop_queue_wait_seconds_count")) == ("engine" not in facts)


@pytest.mark.parametrize(("seconds", "first"), [
    (0.0, "0.005"), (0.005, "0.005"), (0.0051, "0.025"), (300.0, "300.0"), (301.0, "+Inf")])
def test_a_bucket_holds_its_bound(seconds: float, first: str) -> None:
    """And all that is below it; the last one holds everything."""
    page = ended(queue=seconds)
    held = [sample.labels["le"] for sample in page.samples
            if sample.name == "loop_queue_wait_seconds_bucket" and sample.value]
    assert held[0] == first and held[-1] == "+Inf"
    assert page.value("loop_queue_wait_seconds_sum") == seconds


def test_loading_counts_where_there_was_some() -> None:
    """Most calls find their engine loaded: their zeros would hide what a start takes."""
    assert not ended().by("loop_load_wait_seconds_count")
    assert ended(load=2.0).value("loop_load_wait_seconds_sum") == 2.0


def test_threads_count_exactly() -> None:
    """However many requests end at the same time."""
    counted, rounds, threads = RequestMetrics(), 400, 8
    record = Record("POST", route="/r", engine="e", status=499, closed_by=Closer.CLIENT,
                    prompt_tokens=3)

    def count() -> None:
        for _ in range(rounds):
            counted.begin()
            counted.begin()
            counted.end(record)

    running = [threading.Thread(target=count) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    page, all_of_them = page_of(counted), rounds * threads
    for name in ("loop_calls_in_flight", "loop_calls_total", "loop_client_disconnects_total",
                 "loop_queue_wait_seconds_count"):
        assert page.value(name) == all_of_them, name
    assert page.value("loop_tokens_total", kind="prompt") == 3 * all_of_them
