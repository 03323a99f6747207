"""Header fields on both ways: what must not reach the engine, and what must reach the client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.fakes.engine_steps import COMPLETION, JSON_TYPE, reply, send
from tests.fakes.raw_client import fetch
from tests.fakes.raw_engine import RawEngine, RawRequest
from tests.server.calls import CHAT, HELLO, JSON, get, openai_error, post, to_bytes
from tests.server.conftest import StartGateway
from tests.server.gateway_process import GatewayProcess

KEY = "sk-client-K"
ENGINE_KEY = "sk-engine-E"
NOSY = [
    *JSON, ("Authorization", f"Bearer {KEY}"), ("x-api-key", KEY), ("api-key", KEY),
    ("X-Goog-Api-Key", KEY), ("Cookie", f"a={KEY}"), ("Proxy-Authorization", f"Basic {KEY}"),
    ("Connection", "keep-alive, X-Drop"), ("X-Drop", KEY), ("Keep-Alive", "timeout=77"),
    ("TE", "trailers"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk"), ("Trailer", "X-T"),
    ("OpenAI-Organization", KEY), ("OpenAI-Project", KEY), ("X-Forwarded-For", KEY),
    ("User-Agent", KEY), ("Referer", KEY), ("Origin", "http://localhost"), ("X-Anything", KEY),
    ("Accept-Encoding", "gzip, br"), ("Accept-Language", KEY), ("If-None-Match", KEY),
]
# What a call to an engine may carry; everything else of the client's stays here.
ALLOWED = {"host", "content-type", "content-length", "accept", "accept-encoding", "user-agent",
           "connection", "authorization", "x-request-id"}


class Keys:
    """A gateway whose models `none`, `own` and `empty` differ in their engine's key."""

    def __init__(self, url: str, engines: dict[str, RawEngine]) -> None:
        self.url = url
        self.engines = engines

    def chat(self, model: str, headers: list[tuple[str, str]]) -> RawRequest:
        """Send one chat with these headers; gives what the engine got."""
        engine = self.engines[model]
        engine.answer_with(reply())
        answer = post(self.url, CHAT, {**HELLO, "model": model}, headers)
        assert answer.status == 200, answer.body
        [request] = engine.requests
        return request


@pytest.fixture(scope="module")
def keys(start_gateway: StartGateway,
         tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keys]:
    """Three engines: without a key, with one, with an empty one."""
    configured = {"none": {}, "own": {"api-key": ENGINE_KEY}, "empty": {"api-key": ""}}
    with ExitStack() as stack:
        engines = {name: stack.enter_context(RawEngine(reply())) for name in configured}
        gateway = start_gateway({"loop": {
            "home": str(tmp_path_factory.mktemp("keys")),
            "engines": [{"url": engines[name].url, "models": [name], **key}
                        for name, key in configured.items()]}})
        yield Keys(gateway.url, engines)


@pytest.mark.parametrize("model", ["none", "own", "empty"])
def test_nothing_of_the_clients_leaks_to_the_engine(keys: Keys, model: str) -> None:
    """Keys, cookies, hop-by-hop fields and all others of the client's stay at the gateway."""
    request = keys.chat(model, NOSY)
    names = {name.lower() for name, _ in request.headers}
    assert names <= ALLOWED, names - ALLOWED
    assert not [field for field in request.headers if KEY in field[1]]
    assert request.all("Connection") in ([], ["keep-alive"])
    assert request.all("Accept-Encoding") == ["identity"]
    assert request.all("Content-Length") == [str(len(request.body))]


@pytest.mark.parametrize(("model", "sent"), [
    ("none", []), ("own", [f"Bearer {ENGINE_KEY}"]), ("empty", [])])
@pytest.mark.parametrize("headers", [JSON, NOSY], ids=["modest", "nosy"])
def test_the_engine_gets_its_own_key_and_no_other(
        keys: Keys, model: str, sent: list[str], headers: list[tuple[str, str]]) -> None:
    """An engine's key goes out once, as Bearer; without one nothing takes its place."""
    assert keys.chat(model, headers).all("Authorization") == sent


def test_one_users_cookie_is_not_the_next_users(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """A cookie that the engine sets goes out with no later call."""
    cookies = [("Set-Cookie", "sid=1; Path=/"), ("Set-Cookie", "b=2; Path=/; Max-Age=999")]
    engine.answer_with(reply(headers=[*JSON_TYPE, *cookies]), reply())
    for _ in range(2):
        assert post(gateway.url, CHAT, HELLO).status == 200
    assert [request.all("Cookie") for request in engine.requests] == [[], []]


def test_each_call_has_an_id_that_all_see(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The client is told the same X-Request-Id as the engine, another one each time."""
    told = [post(gateway.url, CHAT, HELLO).header("X-Request-Id") for _ in range(2)]
    assert told[0] and told[1] and told[0] != told[1]
    assert [request.all("X-Request-Id") for request in engine.requests] == [[told[0]], [told[1]]]


@pytest.mark.parametrize("sent", [
    "abc-123", "", "a b", "caf\xe9", "a" * 5000, "../../x", "a,b", '"><script>'])
def test_the_clients_own_id_does_no_harm(
        gateway: GatewayProcess, engine: RawEngine, sent: str) -> None:
    """Whatever a client calls its request, both sides see one id of a decent size."""
    answer = post(gateway.url, CHAT, HELLO, [*JSON, ("X-Request-Id", sent)])
    told = answer.header("X-Request-Id")
    assert answer.status == 200
    assert told and len(told) <= 200 and told.isascii()
    assert engine.requests[0].all("X-Request-Id") == [told]


@pytest.mark.parametrize("path", ["/v1/models", "/v1/nope", "/api/tags", "/api/nope"])
def test_every_answer_has_an_id(gateway: GatewayProcess, path: str) -> None:
    """Answers that no engine had a part in carry an id as well."""
    assert get(gateway.url, path).header("X-Request-Id")


PASSED_BACK = [("Retry-After", "30"), ("x-ratelimit-remaining-requests", "0"),
               ("x-ratelimit-reset-tokens", "6m0s"), ("X-Custom", "y"),
               ("openai-processing-ms", "5")]


@pytest.mark.parametrize("status", [200, 201, 400, 429, 503])
def test_an_engines_headers_are_passed_back(
        gateway: GatewayProcess, engine: RawEngine, status: int) -> None:
    """A client waits as long as the engine asks it to; the gateway tries nothing again."""
    body = b'{"error": {"message":"slow down"}}\n'
    engine.answer_with(reply(status, body, [("Content-Type", "application/JSON"), *PASSED_BACK]))
    answer = post(gateway.url, CHAT, HELLO)
    assert (answer.status, answer.body) == (status, body)
    assert answer.header("Content-Type") == "application/JSON"
    assert [(name, answer.header(name)) for name, _ in PASSED_BACK] == PASSED_BACK
    assert len(engine.requests) == 1


def test_a_field_that_is_there_twice_stays_there_twice(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Repeated fields of the engine's arrive one by one or joined, none lost."""
    engine.answer_with(reply(headers=[*JSON_TYPE, ("X-Many", "1"), ("X-Many", "2")]))
    assert ", ".join(post(gateway.url, CHAT, HELLO).all("X-Many")) == "1, 2"


HOP_BY_HOP = [
    ("Keep-Alive", "timeout=77"), ("Proxy-Authenticate", "Basic"), ("Trailer", "X-T"),
    ("TE", "trailers"), ("Upgrade", "h2c"), ("Connection", "keep-alive, X-Drop"),
    ("X-Drop", "1"), ("Proxy-Connection", "keep-alive")]


def test_hop_by_hop_fields_end_at_the_gateway(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """What concerns the engine's connection is not told to the client."""
    engine.answer_with(reply(headers=[*JSON_TYPE, *HOP_BY_HOP, ("X-Kept", "1")]))
    answer = post(gateway.url, CHAT, HELLO)
    found = {name.lower() for name, _ in answer.headers}
    assert answer.header("X-Kept") == "1"
    assert found & {name.lower() for name, _ in HOP_BY_HOP} <= {"connection"}
    assert "X-Drop" not in (answer.header("Connection") or "")


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_server_date_and_length_are_there_once(
        gateway: GatewayProcess, engine: RawEngine, framing: str) -> None:
    """However the engine ends its answer, the client gets one right length."""
    head = b"HTTP/1.1 200 OK\r\nServer: engine/1\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
    head += b"Content-Type: application/json\r\n"
    whole = {"length": head + b"Content-Length: %d\r\n\r\n" % len(COMPLETION) + COMPLETION,
             "chunked": head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (
                 len(COMPLETION), COMPLETION),
             "close": head + b"Connection: close\r\n\r\n" + COMPLETION}[framing]
    engine.answer_with([send(whole), lambda exchange: exchange.close()]
                       if framing == "close" else send(whole))
    answer = post(gateway.url, CHAT, HELLO)
    assert (answer.status, answer.body, answer.cut) == (200, COMPLETION, False)
    assert len(answer.all("Server")) <= 1 and len(answer.all("Date")) == 1
    assert answer.header("Content-Length") == str(len(COMPLETION))
    assert answer.all("Transfer-Encoding") == []


def test_a_field_that_is_not_ascii_does_no_harm(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """A byte above 127 in an engine's header is passed on or dropped."""
    engine.answer_with(reply(headers=[*JSON_TYPE, ("X-Latin", "caf\xe9")]))
    answer = post(gateway.url, CHAT, HELLO)
    assert (answer.status, answer.body) == (200, COMPLETION)
    assert answer.all("X-Latin") in ([], ["caf\xe9"])


def test_a_head_of_many_fields_works(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Proxies in front add their own fields; fifty more are no reason to refuse."""
    more = [(f"X-More-{number}", "a" * 50) for number in range(50)]
    assert fetch(gateway.url, "POST", CHAT, to_bytes(HELLO), [*JSON, *more]).status == 200


def test_a_dead_engines_key_stays_secret(start_gateway: StartGateway,
                                         tmp_path_factory: pytest.TempPathFactory) -> None:
    """Neither the error nor the log shows the key of the engine or the client."""
    gateway = start_gateway({"loop": {
        "home": str(tmp_path_factory.mktemp("dead")),
        "engines": [{"url": "http://127.0.0.1:1", "models": ["m"], "api-key": ENGINE_KEY}]}})
    answer = post(gateway.url, CHAT, HELLO, NOSY)
    assert (answer.status, openai_error(answer)["code"]) == (502, "engine_unavailable")
    for text in (answer.body.decode(), str(answer.headers), gateway.log(),
                 gateway.access_log()):
        assert KEY not in text and ENGINE_KEY not in text
