"""How a body travels: with a length or in chunks, whole or cut, in time or not, too long or not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.fakes.wire import Cut, read_head
from tests.server.calls import CHAT, HELLO, SHOW, error_text, get, openai_error, post
from tests.server.conftest import StartGateway
from tests.server.gateway_process import GatewayProcess

BODY = json.dumps(HELLO).encode()
LIMIT = 1024 * 1024
BOTH = pytest.mark.parametrize("path", [CHAT, SHOW])


def head(path: str, *fields: str) -> bytes:
    """The head of a POST with these header lines."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


def chunked(data: bytes, size: int, extension: bytes = b"") -> bytes:
    """`data` in chunks of `size`, without the last chunk."""
    parts = [data[start:start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts)


def send_raw(url: str, data: bytes, end: bool = False) -> RawAnswer:
    """Send bytes, with `end` stop sending after them; the answer is whole. Raises Cut.

    A server that has heard enough may close while this is still sending; its answer counts.
    """
    with RawClient(url) as client:
        with suppress(ConnectionError):
            client.send(data)
        if end:
            client.end()
        return client.answer("POST").whole()


ENDINGS = {
    "plain": b"0\r\n\r\n", "trailer": b"0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n",
    "zeros": b"000\r\n\r\n", "extension": b"0;a=b\r\n\r\n",
}


@BOTH
@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_a_chunked_body_reaches_the_engine_with_a_length(
        gateway: GatewayProcess, engine: RawEngine, path: str, size: int, ending: bytes) -> None:
    """The engine gets one right Content-Length, and neither chunks nor trailers."""
    data = head(path, "Transfer-Encoding: chunked") + chunked(BODY, size, b";x=1") + ending
    assert send_raw(gateway.url, data).status == 200
    if path == CHAT:
        [request] = engine.requests
        assert request.body == BODY
        assert request.all("Content-Length") == [str(len(BODY))]
        assert {"transfer-encoding", "trailer", "x-sum", "x-other"}.isdisjoint(
            name.lower() for name, _ in request.headers)


@BOTH
def test_a_client_that_asks_first_is_told_to_go_on(
        gateway: GatewayProcess, engine: RawEngine, path: str) -> None:
    """`Expect: 100-continue` is answered by the gateway and never reaches the engine."""
    body = json.dumps({**HELLO, "x": "a" * 2_000_000}).encode()
    with RawClient(gateway.url) as client:
        client.send(head(path, f"Content-Length: {len(body)}", "Expect: 100-continue"))
        assert read_head(client.wire)[0].startswith("HTTP/1.1 100 ")
        client.send(body)
        assert client.answer("POST").whole().status == 200
    if path == CHAT:
        assert engine.requests[0].body == body
        assert engine.requests[0].all("Expect") == []


BROKEN_CHUNKS = {
    "no_number": b"ZZ\r\n", "negative": b"-1\r\n", "prefixed": b"0x5\r\nhello\r\n",
    "underscore": b"1_0\r\n", "no_size": b"\r\n", "spaces": b" 5 5\r\nhello\r\n",
    "too_long": b"2\r\nabc\r\n", "no_end_of_line": b"3\r\nabcXY0\r\n\r\n",
}


@BOTH
@pytest.mark.parametrize("chunk", BROKEN_CHUNKS.values(), ids=BROKEN_CHUNKS)
@pytest.mark.parametrize("before", [b"", chunked(BODY, 20)], ids=["first", "last"])
def test_a_broken_chunk_is_refused(gateway: GatewayProcess, engine: RawEngine, path: str,
                                   chunk: bytes, before: bytes) -> None:
    """A body whose framing is wrong gets a 400; what follows it is no second request."""
    second = head(CHAT, f"Content-Length: {len(BODY)}") + BODY
    data = head(path, "Transfer-Encoding: chunked") + before + chunk + second
    answer = send_raw(gateway.url, data)
    assert (answer.status, bool(error_text(answer, path))) == (400, True)
    assert engine.connections == []
    assert get(gateway.url, "/health").status == 200


CUT_BODIES = {
    "by_length": head(CHAT, f"Content-Length: {len(BODY) + 1}") + BODY,
    "early": head(CHAT, "Content-Length: 50") + b'{"model":"',
    "no_byte": head(CHAT, "Content-Length: 50"),
    "in_a_chunk": head(CHAT, "Transfer-Encoding: chunked") + chunked(BODY, 1000)[:-9],
    "no_last_chunk": head(CHAT, "Transfer-Encoding: chunked") + chunked(BODY, 1000),
    "in_the_trailer": head(CHAT, "Transfer-Encoding: chunked") + chunked(BODY, 99) + b"0\r\nX: 1",
}


@pytest.mark.parametrize("data", CUT_BODIES.values(), ids=CUT_BODIES)
@pytest.mark.parametrize("how", ["end", "close", "reset"])
def test_a_cut_body_never_reaches_the_engine(
        gateway: GatewayProcess, engine: RawEngine, data: bytes, how: str) -> None:
    """A client that leaves before its body is whole has asked nothing."""
    with RawClient(gateway.url) as client:
        client.send(data)
        getattr(client, how)()
        if how == "end":
            with suppress(Cut):  # half a request need not be answered at all
                assert client.answer("POST").whole().status == 400
    assert post(gateway.url, CHAT, HELLO).status == 200
    assert [request.body for request in engine.requests] == [BODY]


@BOTH
@pytest.mark.parametrize("fields", [
    ["Content-Length: abc"], ["Content-Length: -5"], ["Content-Length: +5"],
    ["Content-Length: 5", "Content-Length: 6"], ["Transfer-Encoding: gzip"],
    ["Transfer-Encoding: chunked", "Content-Length: 5"], ["Transfer-Encoding: xchunked"]])
def test_a_doubtful_length_is_refused(
        gateway: GatewayProcess, engine: RawEngine, path: str, fields: list[str]) -> None:
    """A length that two readers could read differently gets a 4xx or 501, as JSON."""
    answer = send_raw(gateway.url, head(path, *fields) + b"0\r\n\r\n")
    assert 400 <= answer.status < 500 or answer.status == 501
    assert answer.header("Content-Type") == "application/json" and answer.json()["error"]
    assert engine.connections == []


@pytest.fixture(scope="module")
def narrow_engine() -> Iterator[RawEngine]:
    """The engine behind the narrow gateway."""
    with RawEngine(reply()) as engine:
        yield engine


@pytest.fixture(scope="module")
def narrow(narrow_engine: RawEngine, start_gateway: StartGateway,
           tmp_path_factory: pytest.TempPathFactory) -> GatewayProcess:
    """A gateway of two threads that takes bodies of 1 MiB and waits 600 ms for them."""
    home = RegistryHome(tmp_path_factory.mktemp("narrow") / "home")
    home.add("m")
    return start_gateway({
        "server": {"threads": 2, "max-body": "1MiB", "body-timeout": "600ms"},
        "loop": {"home": str(home.path),
                 "engines": [{"url": narrow_engine.url, "models": ["m"]}]}})


def sized(size: int) -> bytes:
    """A request body of exactly `size` bytes."""
    frame = json.dumps({**HELLO, "x": ""}).encode()
    return frame[:-2] + b"a" * (size - len(frame)) + frame[-2:]


@BOTH
def test_a_body_of_the_limit_is_taken(narrow: GatewayProcess, path: str) -> None:
    """max-body itself is allowed."""
    assert post(narrow.url, path, sized(LIMIT)).status == 200


LONG = {
    "length": ([f"Content-Length: {LIMIT + 1}"], sized(LIMIT + 1)),
    "chunks": (["Transfer-Encoding: chunked"], chunked(sized(LIMIT + 1), 65536) + b"0\r\n\r\n"),
    "far": ([f"Content-Length: {20 * LIMIT}"], sized(20 * LIMIT)),
    "announced_length": (["Content-Length: 99999999999999"], b""),
}


@BOTH
@pytest.mark.parametrize(("fields", "body"), LONG.values(), ids=LONG)
def test_a_body_over_the_limit_is_a_413(
        narrow: GatewayProcess, narrow_engine: RawEngine, path: str, fields: list[str],
        body: bytes) -> None:
    """One byte more, or the announcement of more, gets a 413 in the API's own shape."""
    narrow_engine.answer_with(reply())
    answer = send_raw(narrow.url, head(path, *fields) + body)
    assert (answer.status, bool(error_text(answer, path))) == (413, True)
    if path == CHAT:
        error = openai_error(answer)
        assert (error["type"], error["code"], error["param"]) == (
            "invalid_request_error", "request_too_large", None)
    assert narrow_engine.connections == []


def refused_or_dropped(client: RawClient) -> bool:
    """Whether the server refuses the request, or drops it; raises TimeoutError when it waits."""
    try:
        return client.answer("POST").whole().status in (400, 408, 503)
    except Cut:
        return True


SLOW = {
    "no_body": head(CHAT, "Content-Length: 50"),
    "half_a_body": head(CHAT, "Content-Length: 50") + b'{"model":',
    "half_a_chunk": head(SHOW, "Transfer-Encoding: chunked") + b"9\r\n{",
    "half_a_head": head(CHAT, "Content-Length: 50")[:-20],
}


@pytest.mark.parametrize("data", SLOW.values(), ids=SLOW)
def test_a_silent_client_costs_no_thread(narrow: GatewayProcess, data: bytes) -> None:
    """A request that does not become whole in time is refused or dropped, and others go on."""
    clients = [RawClient(narrow.url) for _ in range(4)]
    for client in clients:
        client.send(data)
    assert get(narrow.url, "/health").status == 200
    for client in clients:
        with client:
            assert refused_or_dropped(client)


def test_the_rest_of_a_refused_body_is_no_request(
        narrow: GatewayProcess, narrow_engine: RawEngine) -> None:
    """What a late client still sends after the refusal is never read as a call."""
    narrow_engine.answer_with(reply())
    inner = head(CHAT, f"Content-Length: {len(BODY)}") + BODY
    with RawClient(narrow.url) as client:
        client.send(head(CHAT, f"Content-Length: {len(inner)}"))
        assert refused_or_dropped(client)
        with suppress(Cut, ConnectionError):
            client.send(inner)
            client.answer("POST").whole()
    assert narrow_engine.connections == []


def test_a_dripping_client_is_not_waited_for(narrow: GatewayProcess) -> None:
    """The time is that of the whole body: a byte now and then does not prolong it."""
    with RawClient(narrow.url) as client:
        client.send(head(CHAT, "Content-Length: 1000"))
        client.socket.settimeout(0.1)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                client.send(b" ")
                assert refused_or_dropped(client)
                return
            except TimeoutError:
                continue
            except ConnectionError:
                return
        raise AssertionError("the gateway waits for ever")


def test_silent_connections_cost_no_thread(narrow: GatewayProcess) -> None:
    """Connections that say nothing at all do not keep others from being answered."""
    clients = [RawClient(narrow.url) for _ in range(8)]
    assert get(narrow.url, "/health").status == 200
    for client in clients:
        client.close()
