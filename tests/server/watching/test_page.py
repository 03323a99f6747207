"""GET /metrics of a gateway as it runs, and its log as people read it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.fakes.engine_steps import reply, whole
from tests.fakes.raw_client import RawClient, fetch
from tests.fakes.raw_engine import Exchange, RawEngine
from tests.server.calls import CHAT, HELLO, get, post
from tests.server.conftest import StartGateway
from tests.server.gateway_process import GatewayProcess
from tests.server.scraping import page_of

SAID = b"# HELP llamacpp:n Said.\n# TYPE llamacpp:n gauge\nllamacpp:n 7\n"
TYPE = "text/plain; version=0.0.4"
PROPS = b'{"default_generation_settings":{"n_ctx":4096},"total_slots":4}'
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [A-Z]+ [a-z_.]+:? .+")


def probed(exchange: Exchange) -> None:
    """What a llama-server says of itself."""
    metrics = exchange.request.line.split(" ")[1].startswith("/metrics")
    exchange.send(whole(200, SAID, [("Content-Type", TYPE)]) if metrics else whole(200, PROPS))


@pytest.fixture(scope="module")
def engine() -> Iterator[RawEngine]:
    """A llama-server that tells metrics."""
    with RawEngine(reply()) as engine:
        engine.probe_script = probed
        yield engine


@pytest.fixture(scope="module")
def gateway(engine: RawEngine, start_gateway: StartGateway,
            tmp_path_factory: pytest.TempPathFactory) -> GatewayProcess:
    """A gateway in front of it that logs for people."""
    started = start_gateway({"server": {"log-format": "text"}, "loop": {
        "home": str(tmp_path_factory.mktemp("home")), "memory-budget": "1GiB",
        "engines": [{"url": engine.url, "models": ["m"], "slots": 4}]}})
    assert post(started.url, CHAT, HELLO).status == 200
    return started


def test_the_engines_metrics_stand_on_the_page(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Behind the gateway's own, with the engine and the model as labels."""
    page = page_of(gateway.url)
    assert page.value("llamacpp:n", engine=engine.url, model="m") == 7
    assert page.value("loop_engine_state", engine=engine.url, model="m", state="ready") == 1
    assert page.value("loop_engine_slots", engine=engine.url) == 4
    assert page.value("loop_memory_budget_bytes") == 2**30
    assert page.value("loop_memory_used_bytes") == 0
    assert page.value("process_resident_memory_bytes") > 10**7
    assert page.value("loop_build_info") == 1


def test_the_engines_own_page_is_to_be_had(gateway: GatewayProcess) -> None:
    """With the model in the query, byte for byte."""
    answer = get(gateway.url, "/metrics?model=m")
    assert (answer.status, answer.body, answer.header("Content-Type")) == (200, SAID, TYPE)
    assert get(gateway.url, "/metrics?model=nope").status == 404


def test_a_head_is_a_page_without_its_body(gateway: GatewayProcess) -> None:
    """As on every route."""
    answer = fetch(gateway.url, "HEAD", "/metrics")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"


def test_all_lines_have_one_form(gateway: GatewayProcess) -> None:
    """Those of requests, of the gateway and of gunicorn, of what is no HTTP too."""
    with RawClient(gateway.url) as client:
        client.send(b"no\x1b[2J HTTP\r\n\r\n")
        assert client.answer().whole().status == 400
    requests, others = gateway.access_log().splitlines(), gateway.log().splitlines()
    assert any(f" POST {CHAT} 200 " in line for line in requests)
    assert any("Listening at" in line for line in others)
    assert any("refused a request" in line for line in others)
    for line in requests + others:
        assert LINE.fullmatch(line) and line.isprintable(), line
