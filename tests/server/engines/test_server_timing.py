"""Server-Timing says of every answer where its time went."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests.fakes.raw_client import RawAnswer, RawClient
from tests.server.calls import post
from tests.server.engines.calling import (
    EMBED, GENERATE, OLLAMA, body, chat, crowd, ollama, succeeds,
)
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine

_FORM = re.compile(
    r"queue;dur=(\d+(?:\.\d+)?), load;dur=(\d+(?:\.\d+)?), engine;dur=(\d+(?:\.\d+)?)")


class Times(NamedTuple):
    """Milliseconds."""

    queue: float
    load: float
    engine: float


def times(answer: RawAnswer) -> Times:
    """What the header says, which has to be there once."""
    found = _FORM.fullmatch(answer.header("Server-Timing") or "")
    assert found, answer.headers
    return Times(*map(float, found.groups()))


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway before engines that load, queue and fail."""
    return start([
        engine(["slow", "slow-native"], "--load", "0.5"), engine("one", slots=1), engine("any"),
        engine("frail", slots=1),
        engine("broken", "--load", "0.2", "--exit", "3"),
    ], queue={"size": 1, "max-wait": "1m"})


@pytest.mark.parametrize("ask", [chat, ollama])
def test_loading_is_told(gateway: ManagedGateway, ask: object) -> None:
    """Of the first call the time in which its engine started, of the next one nothing."""
    model = "slow" if ask is chat else "slow-native"
    call = chat if ask is chat else ollama
    assert times(succeeds(call(gateway.url, model))).load >= 500
    assert times(succeeds(call(gateway.url, model))).load < 500


def test_queueing_is_told(gateway: ManagedGateway) -> None:
    """Of a call that had to wait for a slot."""
    with crowd(gateway.url) as calls:
        first = calls.chat("one", "id:first answer:0.6")
        gateway.journal.one("begin", "one", "first")
        second = calls.chat("one", "id:second")
        gateway.wait_for_queue("one", 1)
        full = chat(gateway.url, "one")
        assert full.status == 429 and times(full)
        found = times(succeeds(first.result()))
        assert found.engine >= 600 and found.queue < 600
        found = times(succeeds(second.result()))
        assert found.queue >= 1 and found.load < 500


def test_the_pause_after_a_crash_is_loading(gateway: ManagedGateway) -> None:
    """A call that waits for a slot when the engine crashes waits for its restart then."""
    gate = gateway.directory / "crash.gate"
    succeeds(chat(gateway.url, "frail"))
    with crowd(gateway.url) as calls:
        doomed = calls.chat("frail", f"id:doomed until:{gate} crash:1", stream=True)
        gateway.journal.wait_for("begin", "frail", "doomed")
        waiting = calls.chat("frail", "id:waiting")
        gateway.wait_for_queue("frail", 1)
        gate.touch()
        assert b'"upstream_error"' in doomed.result().body
        assert times(succeeds(waiting.result())).load >= 250


@pytest.mark.parametrize(("path", "fields"), [
    ("/v1/chat/completions", {"stream": True}), ("/v1/chat/completions", {}),
    ("/v1/embeddings", {"input": "x"}), (OLLAMA, {}), (OLLAMA, {"stream": False}),
    (EMBED, {"input": "x"}), (GENERATE, {})], ids=repr)
def test_the_engines_time_is_told(
        gateway: ManagedGateway, path: str, fields: dict[str, object]) -> None:
    """On every route; of a stream it is the time until the answer began."""
    answer = succeeds(post(gateway.url, path, {**body("any", "answer:0.3 events:1"), **fields}))
    found = times(answer)
    assert found.engine < 20000
    if path == "/v1/chat/completions" and not fields:
        assert found.engine >= 300


@pytest.mark.parametrize(("model", "status"), [("nope", 404), ("broken", 503), ("", 400)])
def test_errors_have_it_too(gateway: ManagedGateway, model: str, status: int) -> None:
    """Also those of the gateway itself."""
    for path in "/v1/chat/completions", OLLAMA:
        answer = post(gateway.url, path, body(model))
        assert answer.status == status and times(answer).queue >= 0
    if model == "broken":
        assert times(answer).load >= 0


NO_HTTP = {
    400: b"hello\r\n\r\n",
    414: b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    417: b"POST /api/chat HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\nx",
    431: b"GET /health HTTP/1.1\r\nHost: a\r\n" + b"Foo: a\r\n" * 5000 + b"\r\n",
    501: b"POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: tea\r\n\r\n",
}


@pytest.mark.parametrize("status", NO_HTTP)
def test_what_is_no_http_has_it_too(gateway: ManagedGateway, status: int) -> None:
    """What is refused before it is a request has spent no time anywhere."""
    with RawClient(gateway.url) as client:
        client.send(NO_HTTP[status])
        answer = client.answer().whole()
    assert answer.status == status and times(answer) == (0, 0, 0)
