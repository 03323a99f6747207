"""How the tests look at a gateway's metrics."""

from __future__ import annotations

from collections.abc import Iterable

from tests.fakes.metrics_page import MetricsPage
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import fetch


def page_of(url: str, headers: Iterable[tuple[str, str]] = ()) -> MetricsPage:
    """GET /metrics."""
    answer = fetch(url, "GET", "/metrics", headers=headers)
    assert answer.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    return MetricsPage(answer.body.decode())


def settled(
        url: str, headers: Iterable[tuple[str, str]] = (), others: int = 0) -> MetricsPage:
    """The page once it and ``others`` are all calls: a client has its answer a moment before."""
    wait_until(lambda: page_of(url, headers).value("loop_calls_in_flight") == 1 + others,
               "all other calls to end", 10)
    return page_of(url, headers)
