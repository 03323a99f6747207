"""Limits of a key: so many requests in a time, so many calls at a time, and headers that tell."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask.testing import FlaskClient

from app.settings import EngineSettings, KeySettings
from tests.api.conftest import Build
from tests.api.holders import bearer, holder
from tests.fakes.engine_steps import JSON_TYPE, chunks, hold, mark, reply, send
from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import DONE, SSE, ev, head_for

CHAT = "/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": False}
ALICE = bearer("alice")
PREFIX = "x-ratelimit-"


@pytest.fixture
def engine() -> Iterator[RawEngine]:
    """The engine of the model m."""
    with RawEngine(reply()) as engine:
        yield engine


@pytest.fixture
def start(build: Build, engine: RawEngine) -> Any:
    """A function that builds a gateway with these keys."""
    def started(*keys: KeySettings, **server: Any) -> FlaskClient:
        return build(engines=(EngineSettings(engine.url, ("m",)),), keys=keys, server=server)
    return started


def told(answer: Any) -> list[str | None]:
    """Limit, remaining and reset, as the headers have them."""
    names = ("limit-requests", "remaining-requests", "reset-requests")
    return [answer.headers.get(PREFIX + name) for name in names]


@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/api/chat"])
def test_one_request_too_many_is_a_429(start: Any, engine: RawEngine, path: str) -> None:
    """It says in whole seconds when to come back; each answer says what is left."""
    client = start(holder("alice", rate="3/minute"), holder("bob"))
    found = [client.post(path, json=BODY, headers=ALICE, buffered=True) for _ in range(4)]
    assert [answer.status_code for answer in found] == [200, 200, 200, 429]
    assert [told(answer)[:2] for answer in found] == [
        ["3", "2"], ["3", "1"], ["3", "0"], ["3", "0"]]
    assert all((told(answer)[2] or "").endswith("s") for answer in found)
    assert 50 <= int(found[3].headers["Retry-After"]) <= 60
    error = json.loads(found[3].data)["error"]
    if path == CHAT:
        assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    elif path == "/v1/messages":
        assert error["type"] == "rate_limit_error"
    else:
        assert error == "the requests of the key 'alice' are limited to 3/minute"
    assert len(engine.requests) == 3


def test_every_request_of_a_key_counts(start: Any) -> None:
    """Lists and errors too, but not those that need no key, nor those of other keys."""
    client = start(holder("alice", rate="4/hour"), holder("bob"))
    for path in ("/health", "/api/version", "/"):
        assert told(client.get(path, headers=ALICE)) == [None, None, None]
    assert client.get("/v1/models", headers=bearer("nobody")).status_code == 401
    assert told(client.get("/v1/models", headers=ALICE))[1] == "3"
    assert told(client.get("/nope", headers=ALICE))[1] == "2"
    assert told(client.post(CHAT, data=b"{", headers=ALICE))[1] == "1"
    assert told(client.get("/v1/models", headers={"x-api-key": "alice-key"}))[1] == "0"
    assert client.get("/api/tags", headers=ALICE).status_code == 429
    answer = client.get("/v1/models", headers=bearer("bob"))
    assert answer.status_code == 200 and told(answer) == [None, None, None]


REFUSED = [("GET", "/engines"), ("GET", "/metrics"), ("POST", "/api/pull"), ("DELETE", "/x"),
           ("POST", "/upstream/m/x"), ("POST", "/v1/load_lora_adapter"), ("POST", "/slots/0")]


@pytest.mark.parametrize(("method", "path"), REFUSED)
def test_what_a_key_may_not_do_counts_too(start: Any, method: str, path: str) -> None:
    """The 403 says what is left, and one too many is a 429 whatever it asks for."""
    client = start(holder("alice", rate="2/hour"))
    found = [client.open(path, method=method, headers=ALICE) for _ in range(3)]
    assert [answer.status_code for answer in found] == [403, 403, 429]
    assert [told(answer)[:2] for answer in found] == [["2", "1"], ["2", "0"], ["2", "0"]]


def test_an_engines_own_limits_are_not_overwritten(start: Any, engine: RawEngine) -> None:
    """Its headers pass as they are; the gateway tries nothing again."""
    theirs = [("Retry-After", "30"), (f"{PREFIX}remaining-requests", "0"), ("X-Custom", "y")]
    engine.answer_with(reply(429, b'{"error":{"message":"slow down"}}', [*JSON_TYPE, *theirs]))
    answer = start(holder("alice", rate="9/minute")).post(CHAT, json=BODY, headers=ALICE)
    assert (answer.status_code, answer.data) == (429, b'{"error":{"message":"slow down"}}')
    assert told(answer) == [None, "0", None] and answer.headers["Retry-After"] == "30"
    assert len(engine.requests) == 1


@pytest.mark.parametrize("path", [CHAT, "/api/chat", "/completion"])
def test_one_call_too_many_at_a_time_is_a_429(start: Any, engine: RawEngine, path: str) -> None:
    """Until another has ended; lists and other keys go on."""
    reached, go_on = threading.Event(), threading.Event()
    engine.answer_with([mark(reached), hold(go_on), reply()], reply())
    client = start(holder("alice", concurrency=1), holder("bob"))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, path, json=BODY, headers=ALICE, buffered=True)
        assert reached.wait(20)
        try:
            second = client.application.test_client().post(path, json=BODY, headers=ALICE)
            assert second.status_code == 429 and int(second.headers["Retry-After"]) >= 1
            assert b"one call at a time" in second.data
            other = client.application.test_client()
            assert other.get("/v1/models", headers=ALICE).status_code == 200
            assert other.post(path, json=BODY, headers=bearer("bob"),
                              buffered=True).status_code == 200
        finally:
            go_on.set()
        assert first.result().status_code == 200
    assert client.post(path, json=BODY, headers=ALICE, buffered=True).status_code == 200


def bad_bodies() -> list[Any]:
    """Requests that end early, each in its own way."""
    return [
        {"data": b"{"}, {"data": b""}, {"json": {"model": "nope", **BODY, "x": 1}},
        {"json": {**BODY, "model": "nope"}}, {"data": b"x" * 200_000}, {"json": {"model": 5}},
        {"data": b"x", "headers": {**ALICE, "Content-Encoding": "br"}},
        {"data": b"x", "headers": {**ALICE, "Content-Encoding": "gzip"}},
    ]


@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/api/chat", "/api/embed", "/completion"])
def test_a_call_that_fails_gives_its_place_back(start: Any, engine: RawEngine, path: str) -> None:
    """Whatever is wrong with it: bodies, models, engines."""
    client = start(holder("alice", concurrency=1))
    for wrong in bad_bodies():
        answer = client.post(path, **{"headers": ALICE, "buffered": True, **wrong})
        assert answer.status_code in (200, 400, 404, 413, 415), answer.data
    for script in (reply(500, b"sad"), reply(400, b"{}"), lambda exchange: exchange.close()):
        engine.answer_with(script)
        assert client.post(path, json={**BODY, "input": "x"}, headers=ALICE,
                           buffered=True).status_code in (400, 500, 502)
    engine.answer_with(reply())
    answer = client.post(CHAT, json=BODY, headers=ALICE, buffered=True)
    assert answer.status_code == 200, answer.data


def streamed(*events: bytes) -> Any:
    """A script that streams these events and ends well."""
    return [send(head_for("chunked", 0, SSE)), chunks(*events, DONE, b"")]


@pytest.mark.parametrize("path", [CHAT, "/api/chat"])
@pytest.mark.parametrize("ending", ["read", "closed", "half"])
def test_a_stream_holds_its_place_until_it_is_closed(
        start: Any, engine: RawEngine, path: str, ending: str) -> None:
    """Read to its end, in part or not at all: once, and not before."""
    engine.answer_with(streamed(ev("a"), ev("b")))
    client = start(holder("alice", concurrency=1))
    for _ in range(3):
        stream = client.post(path, json={**BODY, "stream": True}, headers=ALICE)
        assert stream.status_code == 200
        assert client.post(path, json=BODY, headers=ALICE).status_code == 429
        if ending != "closed":
            next(stream.response) if ending == "half" else stream.get_data()
        stream.close()


def test_places_that_are_all_taken_give_nothing_away(build: Build, engine: RawEngine) -> None:
    """A call that finds no place of the gateway does not keep one of its key."""
    reached, go_on = threading.Event(), threading.Event()
    engine.answer_with([mark(reached), hold(go_on), reply()], reply())
    client = build(engines=(EngineSettings(engine.url, ("m",)),), server={"threads": 1},
                   keys=(holder("alice", concurrency=1), holder("bob")))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, CHAT, json=BODY, headers=bearer("bob"), buffered=True)
        assert reached.wait(20)
        other = client.application.test_client()
        found = [other.post(CHAT, json=BODY, headers=ALICE, buffered=True) for _ in range(3)]
        go_on.set()
        assert [answer.status_code for answer in found] == [503] * 3
        assert first.result().status_code == 200
    assert client.post(CHAT, json=BODY, headers=ALICE, buffered=True).status_code == 200


def test_rates_that_are_counted_elsewhere_hold_too(start: Any) -> None:
    """While nothing answers there, this gateway counts by itself."""
    client = start(holder("alice", rate="1/minute"), rate_storage="redis://127.0.0.1:1")
    assert client.get("/v1/models", headers=ALICE).status_code == 200
    assert client.get("/v1/models", headers=ALICE).status_code == 429
