"""Clients that read slowly, or not at all, cost nobody else anything, and are dropped at last."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.fakes.engine_steps import chunks, hold, reply, send, silence
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawAnswer, RawClient, fetch
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.registry_home import RegistryHome
from tests.fakes.stream_steps import DONE, STOP, endless, ev, head_for
from tests.fakes.wire import Wire
from tests.server.calls import get, openai_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT
from tests.server.stream.asking import ask, read_up_to, send as send_request
from tests.server.stream.conftest import settings_for
from tests.server.stream.leaving import let_go
from tests.server.stream.worker_facts import WorkerFacts

THREADS = 8
MEGABYTE = 1_000_000
BIG = ev("x" * MEGABYTE)
BOUND = 24 * MEGABYTE  # what the worker may grow by, while far more is on offer


@pytest.fixture(scope="module")
def strict(shared_engine: RawEngine, stream_home: RegistryHome,
           tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway of few threads that drops a client after a second without reading."""
    settings = settings_for(
        shared_engine, stream_home, {"threads": THREADS, "write-timeout": "1s"},
        **{"read-timeout": "5m"})
    with GatewayProcess(tmp_path_factory.mktemp("strict"), settings) as process:
        yield process


def small(client: RawClient) -> RawClient:
    """The same client, for whom its kernel takes little."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 131072)
    return client


def megabytes(count: int, *last: Step) -> list[Step]:
    """A stream of large events, as fast as the peer takes it."""
    return [send(head_for("chunked")), *[chunks(BIG)] * count, *last]


@contextmanager
def ignored(gateway: GatewayProcess, engine: RawEngine) -> Iterator[RawClient]:
    """A client that has begun to read a stream without end, and reads no more."""
    asked = len(engine.requests)
    with RawClient(gateway.url) as client:
        read_up_to(ask(small(client)), 1)
        engine.wait_for_requests(asked + 1)
        yield client


def test_a_client_that_stops_reading_is_dropped(
        strict: GatewayProcess, engine: RawEngine) -> None:
    """Its engine is let go, its place is free, and what it reads later has no proper end."""
    engine.answer_with([send(head_for("chunked")), endless(BIG)])
    with RawClient(strict.url) as client:
        answer = ask(small(client))
        wait_until(lambda: all(map(let_go, engine.connections)), "the engine to be let go")
        assert answer.whole().cut
    engine.answer_with(reply())
    assert post(strict.url, CHAT.path, CHAT.body()).status == 200
    assert "Traceback" not in strict.log()


def test_dropped_clients_give_back_their_places(
        strict: GatewayProcess, engine: RawEngine) -> None:
    """All places are taken by clients that read nothing; then all are free again."""
    engine.answer_with([send(head_for("chunked")), endless(BIG)])
    with ExitStack() as stack:
        for _ in range(THREADS):
            stack.enter_context(ignored(strict, engine))
        wait_until(lambda: all(map(let_go, engine.connections)), "the engines to be let go")
    wait_until(lambda: at_once(strict, engine, THREADS) == [200] * THREADS,
               "every place to be free", 10)


def at_once(gateway: GatewayProcess, engine: RawEngine, count: int) -> list[int]:
    """The statuses of so many calls, none of which is answered before all have been asked."""
    go_on = threading.Event()
    engine.answer_with([hold(go_on), reply()])
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(gateway.url)) for _ in range(count)]
        for client in clients:
            send_request(client, stream=False)
        refused, _, _ = select.select([client.socket for client in clients], [], [], 0.5)
        go_on.set()
        assert refused or len(engine.requests) == count
        return [client.answer().status for client in clients]


def test_a_slow_client_gets_all_of_it(strict: GatewayProcess, engine: RawEngine) -> None:
    """One that takes a little at a time is no client that takes nothing: it may take long."""
    engine.answer_with(megabytes(6, chunks(STOP + DONE, b"")))
    with RawClient(strict.url) as client:
        client.wire = Wire(_slowly(small(client), MEGABYTE // 4, 0.1))
        answer = ask(client)
        begin = time.monotonic()
        assert answer.body == BIG * 6 + STOP + DONE
    assert not answer.cut
    assert time.monotonic() - begin > 1.5, "this client was not slower than the write timeout"


def _slowly(client: RawClient, per_pause: int, pause: float) -> Callable[[int], bytes]:
    """A reader that rests each time it has read so much."""
    read = 0

    def receive(size: int) -> bytes:
        nonlocal read
        data = client.socket.recv(size)
        read += len(data)
        if read > per_pause:
            read = 0
            time.sleep(pause)
        return data
    return receive


def test_memory_is_bounded(strict: GatewayProcess, engine: RawEngine) -> None:
    """A fast engine has 200 MB for clients that do not read: the worker does not keep them."""
    engine.answer_with(megabytes(200))
    facts = WorkerFacts(strict)
    with ignored(strict, engine):
        wait_until(lambda: all(map(let_go, engine.connections)), "the engine to be let go")
    facts.forget_peak()
    before = facts.resident()
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(ignored(strict, engine))
        wait_until(lambda: all(map(let_go, engine.connections)), "the engines to be let go")
    assert facts.peak() - before < BOUND


def test_memory_is_bounded_for_those_who_read(strict: GatewayProcess, engine: RawEngine) -> None:
    """100 MB pass through the worker and none of them stay."""
    engine.answer_with(megabytes(100, chunks(STOP + DONE, b"")))
    facts = WorkerFacts(strict)
    facts.forget_peak()
    before = facts.resident()
    with RawClient(strict.url) as client:
        send_request(client)
        size = 0
        while data := client.socket.recv(MEGABYTE):
            size += len(data)
            if data.endswith(b"0\r\n\r\n"):
                break
    assert size > 100 * len(BIG)
    assert facts.peak() - before < BOUND


def test_others_are_served_meanwhile(strict: GatewayProcess, engine: RawEngine) -> None:
    """While clients read nothing, streams of others flow and whole answers come."""
    stuck = [send(head_for("chunked")), endless(BIG)]
    flowing = [send(head_for("chunked")), chunks(ev("a"), STOP, DONE, b"")]
    engine.answer_with(*[stuck] * (THREADS - 2), flowing)
    with ExitStack() as stack:
        for _ in range(THREADS - 2):
            stack.enter_context(ignored(strict, engine))
        for _ in range(5):
            answer = post(strict.url, CHAT.path, CHAT.body(stream=True))
            assert answer.body == ev("a") + STOP + DONE
        assert get(strict.url, "/health").status == 200


def is_served_or_told(answer: RawAnswer) -> None:
    """One more call: it works, or is told when to come back."""
    if answer.status != 200:
        assert answer.status in (429, 503), answer.body
        assert int(answer.header("Retry-After") or "") >= 0
        assert openai_error(answer)["code"] in ("service_unavailable", "rate_limit_exceeded")


def test_streams_that_hang_do_not_block_the_rest(
        strict: GatewayProcess, engine: RawEngine) -> None:
    """As many silent streams as threads: health and lists answer, one more call does not hang."""
    hanging = [send(head_for("chunked")), chunks(ev("1")), silence]
    engine.answer_with(*[hanging] * THREADS, reply())
    with ExitStack() as stack:
        for _ in range(THREADS):
            client = stack.enter_context(RawClient(strict.url))
            assert read_up_to(ask(client), len(ev("1"))) == ev("1")
        for _ in range(5):
            assert fetch_soon(strict, "GET", "/health").status == 200
            assert fetch_soon(strict, "GET", "/api/tags").status == 200
            is_served_or_told(fetch_soon(strict, "POST", CHAT.path, CHAT.body()))
            is_served_or_told(fetch_soon(strict, "POST", CHAT.path, CHAT.body(stream=True)))
    engine.answer_with(reply())
    for client in range(THREADS):
        assert post(strict.url, CHAT.path, CHAT.body()).status == 200


def fetch_soon(gateway: GatewayProcess, method: str, path: str,
               body: bytes | None = None) -> RawAnswer:
    """One request that is answered within a few seconds; raises TimeoutError otherwise."""
    with RawClient(gateway.url, timeout=3) as client:
        return client.request(method, path, [], body).whole()


HALF_HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
HALF_BODY = HALF_HEAD + b"Content-Length: 5000\r\n\r\n{"
QUIET = {"silent": b"", "half_a_line": b"GE", "half_a_head": HALF_HEAD, "half_a_body": HALF_BODY,
         "half_a_chunk": HALF_HEAD + b"Transfer-Encoding: chunked\r\n\r\n50\r\n{"}


@pytest.mark.parametrize("times", [1, 8])
@pytest.mark.parametrize("said", QUIET.values(), ids=QUIET)
def test_quiet_connections_do_not_block_the_rest(
        strict: GatewayProcess, engine: RawEngine, said: bytes, times: int) -> None:
    """Clients that connect and say nothing, or not enough, hold up nobody."""
    with ExitStack() as stack:
        for _ in range(THREADS * times):
            stack.enter_context(RawClient(strict.url)).send(said)
        for _ in range(3):
            assert fetch_soon(strict, "GET", "/health").status == 200
            assert fetch_soon(strict, "GET", "/api/tags").status == 200
            is_served_or_told(fetch_soon(strict, "POST", CHAT.path, CHAT.body()))
    assert fetch(strict.url, "GET", "/health").status == 200
