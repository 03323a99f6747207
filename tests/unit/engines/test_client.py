"""What is sent to an engine, and what is made of its answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import requests
import responses

from app.api.payload import JsonBody
from app.call import Call, Headers, Reply
from app.engines.client import EngineClient
from app.engines.failures import Limits
from app.engines.hangup import Departure
from app.errors import GatewayError, Kind

URL = "http://engine.test:8080"
CHAT = "/v1/chat/completions"
RAW = '{ "model":"m",  "x": 1E2, "seed":9007199254740993, "text":"北😀" }'.encode()
CALL = Call(CHAT, "m", JsonBody(RAW, {"model": "m"}), "id-1")


@pytest.fixture
def engine() -> Iterator[responses.RequestsMock]:
    """What answers in place of the network; a request that is not expected fails."""
    with responses.RequestsMock() as mock:
        yield mock


def facts(reply: Reply) -> tuple[int, Headers, bytes]:
    """What a reply says, its body taken."""
    return reply.status, reply.headers, reply.body


def client(url: str = URL, key: str | None = None) -> EngineClient:
    """A client of the engine."""
    return EngineClient(url, key, Limits(connect=2.0, read=0.5), connections=4)


def sent(engine: responses.RequestsMock) -> list[requests.PreparedRequest]:
    """The requests that went out."""
    return [call.request for call in engine.calls]


def test_the_call_goes_out_as_it_is(engine: responses.RequestsMock) -> None:
    """Method, address, the client's own bytes, and these headers only."""
    engine.post(URL + CHAT, body=b"{}")
    client().send(CALL, Departure(None))
    [request] = sent(engine)
    assert (request.method, request.url, request.body) == ("POST", URL + CHAT, RAW)
    assert dict(request.headers) == {
        "Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "loop-gateway",
        "Content-Type": "application/json", "Content-Length": str(len(RAW)),
        "X-Request-Id": "id-1"}


@pytest.mark.parametrize(("key", "header"), [(None, None), ("", None), ("sk-1", "Bearer sk-1")])
def test_the_engines_own_key_is_sent(
        engine: responses.RequestsMock, key: str | None, header: str | None) -> None:
    """As a bearer token; without a key there is no such header."""
    engine.post(URL + CHAT, body=b"{}")
    client(key=key).send(CALL, Departure(None))
    assert sent(engine)[0].headers.get("Authorization") == header


@pytest.mark.parametrize("url", ["http://engine.test/base", "https://engine.test:8443"])
def test_the_path_is_put_behind_the_engines_address(
        engine: responses.RequestsMock, url: str) -> None:
    """Which may have a path of its own."""
    engine.post(url + CHAT, body=b"{}")
    client(url).send(CALL, Departure(None))
    assert sent(engine)[0].url == url + CHAT


@pytest.mark.parametrize(("limit", "limits"), [
    (None, (2.0, 0.5)), (0.25, (0.25, 0.25)), (9.0, (2.0, 9.0))])
def test_limits_are_kept(engine: responses.RequestsMock, limit: float | None,
                         limits: tuple[float, float]) -> None:
    """For the connection, and for each silence: the engine's, or the call's own."""
    engine.post(URL + CHAT, body=b"{}")
    client().send(replace(CALL, limit=limit), Departure(None))
    options: Any = sent(engine)[0]
    assert options.req_kwargs["timeout"] == limits
    assert options.req_kwargs["stream"] is True


def test_each_call_carries_its_own_id(engine: responses.RequestsMock) -> None:
    """One client serves all callers and mixes nothing up."""
    engine.post(URL + CHAT, body=b"{}")
    one = client()
    for number in range(3):
        body = JsonBody(b"[%d]" % number, {})
        one.send(Call(CHAT, "m", body, f"id-{number}"), Departure(None))
    assert [(r.headers["X-Request-Id"], r.body) for r in sent(engine)] == [
        ("id-0", b"[0]"), ("id-1", b"[1]"), ("id-2", b"[2]")]


def test_cookies_are_not_kept(engine: responses.RequestsMock) -> None:
    """What an engine sets for one caller is neither passed on nor sent for another."""
    engine.post(URL + CHAT, body=b"{}", headers={"Set-Cookie": "sid=1; Path=/"})
    one = client()
    for _ in range(2):
        headers = one.send(CALL, Departure(None)).headers
        assert "set-cookie" not in {name.lower() for name, _ in headers}
    assert [request.headers.get("Cookie") for request in sent(engine)] == [None, None]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(engine: responses.RequestsMock, status: int) -> None:
    """The body, and perhaps a key, would go to a stranger."""
    engine.post(URL + CHAT, status=status, headers={"Location": "http://elsewhere.test/"})
    with pytest.raises(GatewayError, match=f"the engine answered {status}") as raised:
        client(key="sk-1").send(CALL, Departure(None))
    assert raised.value.kind is Kind.UPSTREAM_ERROR
    assert len(engine.calls) == 1


@pytest.mark.parametrize("status", [200, 201, 400, 404, 422, 429, 503])
def test_an_answer_comes_back_as_it_is(engine: responses.RequestsMock, status: int) -> None:
    """Status, content type, the headers that may pass, and the very bytes."""
    body = b'{ "timings":{"x":1E2} ,"error":null}\n'
    engine.post(URL + CHAT, status=status, body=body,
                content_type="application/json; charset=utf-8", headers={"Retry-After": "30"})
    assert facts(client().send(CALL, Departure(None))) == (status, [
        ("Content-Type", "application/json; charset=utf-8"), ("Retry-After", "30")], body)


@pytest.mark.parametrize("status", [500, 501, 502, 504])
def test_a_fault_of_the_engine_is_an_error(engine: responses.RequestsMock, status: int) -> None:
    """It is told in the engine's words and not tried again."""
    engine.post(URL + CHAT, status=status, body=b'{"error":{"message":"crashed"}}')
    with pytest.raises(GatewayError, match=f"the engine answered {status}: crashed") as raised:
        client().send(CALL, Departure(None))
    assert raised.value.kind is Kind.UPSTREAM_ERROR
    assert len(engine.calls) == 1


@pytest.mark.parametrize(("failure", "kind"), [
    (requests.ConnectTimeout("slow"), Kind.ENGINE_TIMEOUT),
    (requests.ReadTimeout("slow"), Kind.ENGINE_TIMEOUT),
    (requests.ConnectionError("reset"), Kind.UPSTREAM_ERROR),
    (requests.exceptions.SSLError("bad certificate"), Kind.UPSTREAM_ERROR),
    (requests.exceptions.InvalidURL("bad"), Kind.UPSTREAM_ERROR),
])
def test_a_failure_of_the_library_is_mapped_and_not_tried_again(
        engine: responses.RequestsMock, failure: Exception, kind: Kind) -> None:
    """A call that may have reached the engine is never repeated."""
    engine.post(URL + CHAT, body=failure)
    with pytest.raises(GatewayError) as raised:
        client().send(CALL, Departure(None))
    assert raised.value.kind is kind
    assert len(engine.calls) == 1
