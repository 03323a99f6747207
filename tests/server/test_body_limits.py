"""A body that is announced to be too large is refused for it, before it has come or has not."""

from __future__ import annotations

import json
import pytest

from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.fakes.wire import read_head
from tests.server.calls import CHAT, HELLO, SHOW, error_text, get
from tests.server.conftest import StartGateway
from tests.server.gateway_process import GatewayProcess
from tests.server.test_request_framing import chunked, head

LIMIT = 65536
BODY = json.dumps(HELLO).encode()
BOTH = pytest.mark.parametrize("path", [CHAT, SHOW])
LONG, HUGE = f"Content-Length: {LIMIT + 1}", f"Content-Length: {2**40}"
CHUNKS, ASKING = "Transfer-Encoding: chunked", "Expect: 100-continue"


@pytest.fixture(scope="module")
def patient(shared_engine: RawEngine, start_gateway: StartGateway,
            tmp_path_factory: pytest.TempPathFactory) -> GatewayProcess:
    """A gateway that takes bodies of 64 KiB and waits an hour for them."""
    home = RegistryHome(tmp_path_factory.mktemp("patient") / "home")
    home.add("m")
    return start_gateway({
        "server": {"max-body": LIMIT, "body-timeout": "1h"},
        "loop": {"home": str(home.path), "engines": [{"url": shared_engine.url, "models": ["m"]}]}})


def is_too_large(client: RawClient, path: str) -> None:
    """The one answer is a 413 in the API's shape, and the connection ends with it."""
    answer = client.answer("POST").whole()
    assert (answer.status, bool(error_text(answer, path))) == (413, True)
    assert answer.interim == [] and answer.header("Connection") == "close"
    assert client.wire.arrived(1) == b""


@BOTH
@pytest.mark.parametrize("length", [LONG, HUGE])
def test_who_asks_first_sends_nothing(
        patient: GatewayProcess, engine: RawEngine, path: str, length: str) -> None:
    """`Expect: 100-continue` is answered by the refusal, and by nothing before it."""
    with RawClient(patient.url) as client:
        client.send(head(path, length, ASKING))
        is_too_large(client, path)
    assert engine.requests == []


UNFINISHED = {
    "nothing": ([LONG], b""), "a_part": ([LONG], b"{" * 1000), "huge": ([HUGE], b"{"),
    "nearly": ([LONG], b"{" * LIMIT), "chunk": ([CHUNKS], b"fffffff\r\n{"),
    "chunk_alone": ([CHUNKS], b"10001\r\n"),
    "later_chunk": ([CHUNKS], chunked(b"x" * 40_000, 40_000) + b"9000\r\n"),
    "many_chunks": ([CHUNKS], chunked(b"x" * (LIMIT + 1), 5_000)),
    "no_end": ([CHUNKS], chunked(b"x" * (LIMIT + 1), 70_000)),
    "in_the_trailer": ([CHUNKS], chunked(b"x" * (LIMIT + 1), 70_000) + b"0\r\nX: "),
}


@BOTH
@pytest.mark.parametrize(("fields", "sent"), UNFINISHED.values(), ids=UNFINISHED)
def test_what_is_announced_is_not_waited_for(
        patient: GatewayProcess, engine: RawEngine, path: str, fields: list[str],
        sent: bytes) -> None:
    """A client that falls silent is told that the body is too large, not that it is too slow."""
    with RawClient(patient.url) as client:
        client.send(head(path, *fields) + sent)
        is_too_large(client, path)
    assert engine.requests == []
    assert get(patient.url, "/health").status == 200


def test_chunks_below_the_limit_are_a_body(patient: GatewayProcess, engine: RawEngine) -> None:
    """What is announced is counted once."""
    frame = json.dumps({**HELLO, "x": ""}).encode()
    body = frame[:-2] + b"a" * (LIMIT - len(frame)) + frame[-2:]
    for size in (1000, 40_000, LIMIT):
        with RawClient(patient.url) as client:
            client.send(head(CHAT, CHUNKS) + chunked(body, size) + b"0\r\n\r\n")
            assert client.answer("POST").whole().status == 200
    assert [request.body for request in engine.requests] == [body] * 3


@pytest.mark.parametrize("framing", [f"Content-Length: {len(BODY)}", CHUNKS])
def test_who_asks_and_may_is_told_to_go_on_once(
        patient: GatewayProcess, engine: RawEngine, framing: str) -> None:
    """The connection serves the next request; who does not wait to be told need not be."""
    body = BODY if framing != CHUNKS else chunked(BODY, 20) + b"0\r\n\r\n"
    with RawClient(patient.url) as client:
        client.send(head(CHAT, framing, ASKING))
        assert read_head(client.wire)[0] == "HTTP/1.1 100 Continue"
        for part in (body[:30], body[30:]):
            client.send(part)
        answer = client.answer("POST").whole()
        assert (answer.status, answer.interim) == (200, [])
        client.send(head(CHAT, framing, ASKING) + body)
        assert client.answer("POST").whole().status == 200
        assert client.request("GET", "/v1/models").whole().status == 200
    assert [request.body for request in engine.requests] == [BODY] * 2


@pytest.mark.parametrize("framing", ["Content-Length: 50", CHUNKS])
def test_who_asks_and_is_refused_for_another_reason_sends_nothing(
        patient: GatewayProcess, engine: RawEngine, framing: str) -> None:
    """What would follow could be the body or the next request, so the connection ends."""
    for path, status in (("/health", 405), ("/api/nope", 404)):
        with RawClient(patient.url) as client:
            client.send(head(path, framing, ASKING))
            answer = client.answer("POST").whole()
            assert answer.status == status and answer.interim == []
            assert answer.header("Connection") == "close" and client.wire.arrived(1) == b""
