"""Connections to an engine, over real sockets: kept, found dead, broken in mid-answer."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from app.api.payload import JsonBody
from app.call import Call, Headers, Reply
from app.engines.client import EngineClient
from app.engines.failures import Limits
from app.engines.hangup import Departure
from app.errors import GatewayError, Kind
from tests.fakes.engine_steps import (
    COMPLETION, by_connection, chunks, close, head, mark, pause, refusing_url, reply, reset, send,
    silence, whole,
)
from tests.fakes.raw_engine import Exchange, RawEngine, Script, Step

CALL = Call("/v1/chat/completions", "m", JsonBody(b'{"model":"m"}', {"model": "m"}), "id")
FRESH_OR_REUSED = pytest.mark.parametrize("before", [[], [reply()]], ids=["fresh", "reused"])
DIES = pytest.mark.parametrize("step", [close, reset], ids=["closed", "reset"])
WITHOUT_A_WORD = "the connection to the engine failed: it closed the connection without an answer"
CHUNKED = [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")]


@pytest.fixture
def engine() -> Iterator[RawEngine]:
    """An engine that answers as the test says."""
    with RawEngine(reply()) as engine:
        yield engine


def facts(reply: Reply) -> tuple[int, Headers, bytes]:
    """What a reply says, its body taken."""
    return reply.status, reply.headers, reply.body


def client(url: str, read: float = 20.0) -> EngineClient:
    """A client of the engine at this address."""
    return EngineClient(url, None, Limits(connect=20.0, read=read), connections=16)


def after(engine: RawEngine, before: list[Step], *then: Script) -> EngineClient:
    """A client that has made as many good calls as there are steps before the others."""
    engine.answer_with(*before, *then)
    made = client(engine.url)
    for _ in before:
        assert made.send(CALL, Departure(None)).status == 200
    return made


def failing(client: EngineClient, kind: Kind = Kind.UPSTREAM_ERROR, call: Call = CALL) -> str:
    """The message of the error that the next call ends in."""
    with pytest.raises(GatewayError) as raised:
        client.send(call, Departure(None))
    assert raised.value.kind is kind
    return raised.value.message


def connections(engine: RawEngine) -> list[int]:
    """On which connection each request came."""
    return [request.connection for request in engine.requests]


def test_a_connection_is_kept(engine: RawEngine) -> None:
    """Calls one after another use the same one."""
    one = client(engine.url)
    for _ in range(5):
        assert one.send(CALL, Departure(None)).body == COMPLETION
    assert connections(engine) == [1] * 5


def test_what_arrives_is_one_proper_request(engine: RawEngine) -> None:
    """Nothing of a library's own habits is added on the wire."""
    client(engine.url).send(CALL, Departure(None))
    [request] = engine.requests
    assert request.line == "POST /v1/chat/completions HTTP/1.1"
    assert request.body == CALL.body.raw
    assert sorted(name.lower() for name, _ in request.headers) == [
        "accept", "accept-encoding", "content-length", "content-type", "host", "user-agent",
        "x-request-id"]


def test_the_environment_is_not_asked(
        engine: RawEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a proxy nor a password of the user who started the gateway is used."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password secret")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, refusing_url())
    assert client(engine.url).send(CALL, Departure(None)).status == 200
    assert engine.requests[0].all("Authorization") == []


def test_a_packed_answer_is_unpacked(engine: RawEngine) -> None:
    """An engine that packs although it was asked not to: the headers speak of what comes out."""
    engine.answer_with(reply(200, gzip.compress(COMPLETION), [("Content-Encoding", "gzip")]))
    assert facts(client(engine.url).send(CALL, Departure(None))) == (200, [], COMPLETION)


def test_what_cannot_be_unpacked_keeps_its_label(engine: RawEngine) -> None:
    """A client that knows the coding can read the answer."""
    headers = [("Content-Encoding", "compress")]
    engine.answer_with(reply(200, b"\x1f\x9d\x90", headers))
    assert facts(client(engine.url).send(CALL, Departure(None))) == (200, headers, b"\x1f\x9d\x90")


@DIES
def test_a_dead_kept_connection_costs_nothing(engine: RawEngine, step: Step) -> None:
    """Closed without a byte of answer, the call is sent once more, on a new connection."""
    one = after(engine, [reply()], by_connection(step, reply()))
    assert facts(one.send(CALL, Departure(None))) == (
        200, [("Content-Type", "application/json")], COMPLETION)
    assert connections(engine) == [1, 1, 2]
    assert [request.body for request in engine.requests] == [CALL.body.raw] * 3


def test_a_connection_closed_between_calls_is_replaced(engine: RawEngine) -> None:
    """The engine sees the next call once, on another one."""
    closed = threading.Event()
    one = after(engine, [[reply(), mark(closed), close]], reply())
    assert closed.wait(20)
    assert one.send(CALL, Departure(None)).status == 200
    assert connections(engine)[-1] == 2


def test_many_dead_connections_cost_nothing(engine: RawEngine) -> None:
    """An engine that was restarted has closed them all."""
    everyone = threading.Barrier(8)

    def together(exchange: Exchange) -> None:
        everyone.wait(20)

    def restarted(exchange: Exchange) -> None:
        (close if exchange.request.connection <= 8 else reply())(exchange)

    engine.answer_with(*[[together, reply()]] * 8, restarted)
    one = client(engine.url)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one.send, [CALL] * 8, [Departure(None)] * 8))
    assert [answer.status for answer in answers] == [200] * 8
    assert sorted(connections(engine)) == list(range(1, 9))
    assert one.send(CALL, Departure(None)).status == 200
    assert connections(engine)[8] <= 8 and connections(engine)[9:] == [9]


@DIES
def test_a_kept_connection_that_dies_late_is_an_error(engine: RawEngine, step: Step) -> None:
    """An engine that had the call for longer than half a second may have worked on it."""
    assert failing(after(engine, [reply()], [pause(0.6), step], reply())) == WITHOUT_A_WORD
    assert connections(engine) == [1, 1]


@DIES
def test_a_late_second_try_is_no_third(engine: RawEngine, step: Step) -> None:
    """The first try ends soon and the second late: the call is sent twice, and that is all."""
    assert failing(after(engine, [reply()], step, [pause(0.6), step], reply())) == WITHOUT_A_WORD
    assert connections(engine) == [1, 1, 2]


@DIES
def test_a_new_connection_that_dies_is_an_error(engine: RawEngine, step: Step) -> None:
    """The engine may have seen the call, so it is not sent again."""
    assert failing(after(engine, [], step)) == WITHOUT_A_WORD
    assert connections(engine) == [1]


@DIES
def test_there_are_two_tries_at_most(engine: RawEngine, step: Step) -> None:
    """An engine that closes every connection gets the call on the old and on one new one."""
    assert failing(after(engine, [reply()], step)) == WITHOUT_A_WORD
    assert connections(engine) == [1, 1, 2]


HALVES = {
    "one_byte": b"H",
    "half_a_status_line": b"HTTP/1.1 2",
    "status_line": b"HTTP/1.1 200 OK\r\n",
    "status_line_without_its_end": b"HTTP/1.1 200 OK",
    "half_the_headers": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n",
    "half_a_header": b"HTTP/1.1 200 OK\r\nContent-Type: appl",
    "half_a_length": b"HTTP/1.1 200 OK\r\nContent-Length: 1",
    "half_an_error": b"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n",
    "interim_only": b"HTTP/1.1 100 Continue\r\n\r\n",
    "no_body": head(200, [("Content-Length", "10")]),
    "half_the_body": whole()[:-1],
    "no_chunk": head(200, CHUNKED),
    "half_a_chunk": head(200, CHUNKED) + b"5\r\n{",
    "no_last_chunk": head(200, CHUNKED) + b"2\r\n{}\r\n",
    "half_a_chunk_size": head(200, CHUNKED) + b"2\r\n{}\r\n1",
    "broken_chunk_size": head(200, CHUNKED) + b"zz\r\n{}\r\n",
    "no_gzip": whole(200, b"{}", [("Content-Encoding", "gzip")]),
    "no_http": b"SSH-2.0-OpenSSH_9.2\r\n",
    "empty_lines": b"\r\n\r\n",
    "no_status": b"HTTP/1.1 OK\r\n\r\n",
    "two_lengths": head(200, [("Content-Length", "2"), ("Content-Length", "3")]) + b"{}",
    "endless_header": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    "many_headers": head(200, [("X", "x")] * 200),
}


@FRESH_OR_REUSED
@DIES
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_half_an_answer_is_an_error(
        engine: RawEngine, before: list[Step], step: Step, half: bytes) -> None:
    """Once a byte has come the call was seen: it is sent once, whatever the connection was."""
    message = failing(after(engine, before, [send(half), step]))
    assert message.startswith("the connection to the engine failed: ")
    assert len(engine.requests) == len(before) + 1


@pytest.mark.parametrize("answer", [
    [send(head(200, [("Content-Type", "a/b"), ("Connection", "close")]) + b"{}"), close],
    [send(head(200, [("Content-Type", "a/b")]) + b"{}"), close],
    [send(head(200, [("Content-Type", "a/b"), ("Transfer-Encoding", "chunked")])),
     chunks(b"{", b"}", b"")],
    [send(b"HTTP/1.1 100 Continue\r\n\r\n" + whole(200, b"{}", [("Content-Type", "a/b")]))],
    [send(b"HTTP/1.0 200 OK\r\nContent-Type: a/b\r\n\r\n{}"), close],
], ids=["connection_close", "no_length", "chunked", "interim", "http_1_0"])
@FRESH_OR_REUSED
def test_any_framing_of_an_answer_is_read(
        engine: RawEngine, before: list[Step], answer: Script) -> None:
    """And the connection is used again only where that is allowed."""
    one = after(engine, before, answer, reply())
    assert facts(one.send(CALL, Departure(None))) == (200, [("Content-Type", "a/b")], b"{}")
    assert one.send(CALL, Departure(None)).body == COMPLETION


@FRESH_OR_REUSED
@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\n", whole()[:-1]],
                         ids=["silent", "in_the_headers", "in_the_body"])
@pytest.mark.parametrize(("read", "limit"), [(0.3, None), (600.0, 0.3)])
def test_silence_is_a_timeout(engine: RawEngine, before: list[Step], start: bytes, read: float,
                              limit: float | None) -> None:
    """The limit holds at every point; the connection is dropped and a late answer with it."""
    engine.answer_with(*before, [send(start), silence], reply())
    one = client(engine.url, read)
    for _ in before:
        one.send(CALL, Departure(None))
    message = failing(one, Kind.ENGINE_TIMEOUT, replace(CALL, limit=limit))
    assert message == "the engine did not answer within 300 ms"
    assert engine.connections[0].peer_closed.wait(20)
    assert one.send(CALL, Departure(None)).body == COMPLETION
    assert connections(engine) == [1] * (len(before) + 1) + [2]


def test_the_limit_is_for_silence_not_for_the_whole_answer(engine: RawEngine) -> None:
    """An engine that keeps sending may take longer."""
    ticks = [pause(0.05), chunks(b"1")] * 12
    engine.answer_with([send(head(200, CHUNKED)), *ticks, chunks(b"")])
    assert client(engine.url, read=0.5).send(CALL, Departure(None)).body == b"1" * 12


def test_nothing_listens() -> None:
    """A refused connection has its own kind: the engine has seen nothing."""
    url = refusing_url()
    assert failing(client(url), Kind.ENGINE_UNAVAILABLE) == f"no engine is listening at {url}"


def test_a_name_that_does_not_resolve() -> None:
    """It is as if nothing listened."""
    url = "http://no-such-host.invalid:8080"
    assert failing(client(url), Kind.ENGINE_UNAVAILABLE) == f"no engine is listening at {url}"
