"""Engines that fail: every fault has one answer, and none is asked twice for what it has seen."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fakes.engine_steps import (
    COMPLETION, JSON_TYPE, chunks, close, head, refusing_url, reply, reset, send, silence,
)
from tests.fakes.raw_engine import RawEngine, Script
from tests.server.calls import CHAT, HELLO, JSON, openai_error, post
from tests.server.conftest import StartGateway
from tests.server.gateway_process import GatewayProcess

HALF_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: appl"
LONGER = head(200, [*JSON_TYPE, ("Content-Length", "5000")]) + COMPLETION
CHUNKED = head(200, [*JSON_TYPE, ("Transfer-Encoding", "chunked")])


def is_fault(gateway: GatewayProcess, engine: RawEngine, status: int, code: str) -> str:
    """One chat that fails this way, having been sent once, and one that works; the message."""
    answer = post(gateway.url, CHAT, HELLO)
    assert answer.status == status, answer.body
    error = openai_error(answer)
    assert (error["type"], error["param"], error["code"]) == ("server_error", None, code)
    assert len(engine.requests) == 1
    engine.answer_with(reply())
    assert post(gateway.url, CHAT, HELLO).status == 200
    return str(error["message"])


def test_a_kept_connection_that_dies_is_replaced(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """An engine that closes a reused connection without a byte is asked again on a new one."""
    engine.answer_with(reply(), close, reply())
    assert [post(gateway.url, CHAT, HELLO).status for _ in range(2)] == [200, 200]
    assert [request.connection for request in engine.requests] == [1, 1, 2]


def test_a_connection_closed_while_idle_is_replaced(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """An engine may close after its answer; the next call never notices."""
    engine.answer_with([reply(), close], reply())
    assert [post(gateway.url, CHAT, HELLO).status for _ in range(2)] == [200, 200]
    assert [request.connection for request in engine.requests] == [1, 2]


def test_an_answer_that_has_begun_is_not_asked_for_again(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Half a head on a reused connection is a 502, and the call was sent once."""
    engine.answer_with(reply(), [send(HALF_HEAD), close], reply())
    assert [post(gateway.url, CHAT, HELLO).status for _ in range(2)] == [200, 502]
    assert len(engine.requests) == 2


def test_an_engine_that_always_hangs_up_is_tried_twice_at_most(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Once on the reused connection, once on a new one, then it is a 502."""
    engine.answer_with(reply(), close)
    assert post(gateway.url, CHAT, HELLO).status == 200
    answer = post(gateway.url, CHAT, HELLO)
    assert (answer.status, openai_error(answer)["code"]) == (502, "upstream_error")
    assert 2 <= len(engine.requests) <= 3


def test_a_reset_of_a_kept_connection_is_asked_again_at_most_once(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """A reset without a byte is like a close, or a 502; never a third try."""
    engine.answer_with(reply(), reset, reply())
    assert post(gateway.url, CHAT, HELLO).status == 200
    answer = post(gateway.url, CHAT, HELLO)
    assert (answer.status, len(engine.requests)) in ((200, 3), (502, 2))


def test_many_calls_at_once_are_all_answered(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Parallel calls each get the answer to their own question."""
    engine.answer_with(lambda exchange: reply(200, exchange.request.body)(exchange))
    bodies = [json.dumps({**HELLO, "seed": number}).encode() for number in range(100)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda body: post(gateway.url, CHAT, body), bodies))
    assert [answer.body for answer in answers] == bodies


SILENT: dict[str, Script] = {
    "at_once": silence,
    "in_the_status_line": [send(b"HTTP/1.1 2"), silence],
    "in_the_head": [send(HALF_HEAD), silence],
    "in_the_body": [send(LONGER), silence],
    "between_chunks": [send(CHUNKED), chunks(COMPLETION), silence],
}


@pytest.fixture(scope="module")
def hasty(start_gateway: StartGateway, shared_engine: RawEngine,
          tmp_path_factory: pytest.TempPathFactory) -> GatewayProcess:
    """A gateway before the same engine that waits 400 ms for it, whatever the others get."""
    return start_gateway({"loop": {
        "home": str(tmp_path_factory.mktemp("hasty")), "read-timeout": "1h",
        "engines": [{"url": shared_engine.url, "models": ["m"], "read-timeout": "400ms"}]}})


@pytest.mark.parametrize("script", SILENT.values(), ids=SILENT)
def test_a_silent_engine_is_a_504(
        hasty: GatewayProcess, engine: RawEngine, script: Script) -> None:
    """Silence longer than the engine's own read timeout, wherever it begins."""
    engine.answer_with(script)
    message = is_fault(hasty, engine, 504, "engine_timeout")
    assert message == "the engine did not answer within 400 ms"


BROKEN: dict[str, Script] = {
    "close_at_once": close, "reset_at_once": reset,
    "close_in_the_head": [send(HALF_HEAD), close], "reset_in_the_head": [send(HALF_HEAD), reset],
    "close_before_the_empty_line": [send(CHUNKED[:-2]), close],
    "close_in_the_body": [send(LONGER), close], "reset_in_the_body": [send(LONGER), reset],
    "close_before_the_last_chunk": [send(CHUNKED), chunks(COMPLETION), close],
    "close_in_a_chunk": [send(CHUNKED + b"500\r\n" + COMPLETION), close],
    "reset_in_a_chunk": [send(CHUNKED + b"500\r\n" + COMPLETION), reset],
    "no_chunk_size": [send(CHUNKED + b"ZZ\r\nxx\r\n0\r\n\r\n"), close],
    "no_http": [send(b"SSH-2.0-OpenSSH_9.2\r\n"), close],
    "no_http_long": [send(b"x" * 100_000), close],
    "old_http": [send(b"<html>hello</html>"), close],
    "tls": [send(b"\x15\x03\x01\x00\x02\x02\x46"), close],
    "zeros": [send(bytes(50)), close], "empty_lines": [send(b"\r\n\r\n\r\n"), close],
    "no_status": [send(b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n"), close],
    "status_99": [send(b"HTTP/1.1 99 Low\r\nContent-Length: 0\r\n\r\n"), close],
    "status_1000": [send(b"HTTP/1.1 1000 High\r\nContent-Length: 0\r\n\r\n"), close],
    "endless_line": [send(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n"), close],
    "endless_head": [send(b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 5000 + b"\r\n"), close],
    "switching": [send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"), close],
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN)
def test_a_broken_answer_is_a_502(
        gateway: GatewayProcess, engine: RawEngine, script: Script) -> None:
    """What is no whole HTTP answer is none, and no part of it reaches the client."""
    engine.answer_with(script)
    message = is_fault(gateway, engine, 502, "upstream_error")
    assert "Traceback" not in message and "object at 0x" not in message


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
def test_a_redirect_is_a_502(gateway: GatewayProcess, engine: RawEngine, status: int) -> None:
    """An engine cannot send the gateway elsewhere."""
    with RawEngine(reply()) as other:
        body = b"" if status == 304 else b"moved"
        engine.answer_with(reply(status, body, [("Location", f"{other.url}/v1/chat/completions")]))
        is_fault(gateway, engine, 502, "upstream_error")
        assert other.connections == []


def test_an_interim_answer_is_passed_over(gateway: GatewayProcess, engine: RawEngine) -> None:
    """A 100 before the answer is none."""
    engine.answer_with([send(b"HTTP/1.1 100 Continue\r\n\r\n"), reply()])
    assert post(gateway.url, CHAT, HELLO).body == COMPLETION


def test_nothing_listens(gateway: GatewayProcess, engine: RawEngine) -> None:
    """A refused connection is a 502 that names the engine's URL, and others still work."""
    answer = post(gateway.url, CHAT, {**HELLO, "model": "gone"})
    assert answer.status == 502
    assert openai_error(answer) == {
        "message": "no engine is listening at http://127.0.0.1:1", "type": "server_error",
        "param": None, "code": "engine_unavailable"}
    assert post(gateway.url, CHAT, HELLO).status == 200


def test_unreachable_engines_do_not_hang(start_gateway: StartGateway,
                                         tmp_path_factory: pytest.TempPathFactory) -> None:
    """A name without an address is like a dead port; a host that drops packets costs its limit."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        # One waiting connection fills the queue: the kernel then drops further attempts.
        with socket.create_connection(deaf.getsockname()):
            full = f"http://127.0.0.1:{deaf.getsockname()[1]}"
            gateway = start_gateway({"loop": {
                "home": str(tmp_path_factory.mktemp("deaf")), "connect-timeout": "300ms",
                "engines": [{"url": "http://engine.invalid:8000", "models": ["nameless"]},
                            {"url": full, "models": ["deaf"]},
                            {"url": refusing_url(), "models": ["closed"]}]}})
            nameless = post(gateway.url, CHAT, {**HELLO, "model": "nameless"})
            answer = post(gateway.url, CHAT, {**HELLO, "model": "deaf"})
    assert openai_error(nameless)["code"] == "engine_unavailable"
    assert openai_error(nameless)["message"] == (
        "no engine is listening at http://engine.invalid:8000")
    assert (answer.status, openai_error(answer)["code"]) in (
        (502, "engine_unavailable"), (504, "engine_timeout"))


PACKED = {
    "gzip": gzip.compress(COMPLETION), "deflate": zlib.compress(COMPLETION),
}


def unpacked(encoding: str | None, body: bytes) -> bytes:
    """The body as a client reads it by its Content-Encoding."""
    if encoding is None:
        return body
    return gzip.decompress(body) if encoding == "gzip" else zlib.decompress(body)


@pytest.mark.parametrize("encoding", PACKED)
@pytest.mark.parametrize("accepted", [[], [("Accept-Encoding", "gzip, deflate")]],
                         ids=["plain_client", "packing_client"])
def test_a_packed_answer_is_readable(gateway: GatewayProcess, engine: RawEngine, encoding: str,
                                     accepted: list[tuple[str, str]]) -> None:
    """An engine that packs unasked still gives the right bytes, as the answer's head says."""
    engine.answer_with(
        reply(200, PACKED[encoding], [*JSON_TYPE, ("Content-Encoding", encoding)]))
    answer = post(gateway.url, CHAT, HELLO, [*JSON, *accepted])
    assert answer.status == 200 and not answer.cut
    assert unpacked(answer.header("Content-Encoding"), answer.body) == COMPLETION
    assert answer.header("Content-Length") == str(len(answer.body))
    assert engine.requests[0].all("Accept-Encoding") == ["identity"]
