"""A client that leaves takes its engine's work with it, and leaves nothing behind."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fakes.deaf_engine import DeafEngine, take
from tests.fakes.engine_steps import chunks, hold, mark, reply, send, silence
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.fakes.stream_steps import DONE, STOP, endless, ev, head_for, stream
from tests.server.calls import post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT, EMBEDDINGS, EVERY, Api, named
from tests.server.stream.asking import ask, read_up_to, send as send_request
from tests.server.stream.conftest import settings_for
from tests.server.stream.leaving import LEAVING, MOMENTS, TWO, Leave, Moment, let_go
from tests.server.stream.worker_facts import WorkerFacts

SOON = 1.0  # seconds within which an engine is let go; nothing else here would do it before


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_the_engine_is_let_go(
        patient: GatewayProcess, engine: RawEngine, moment: Moment, leave: Leave) -> None:
    """However and whenever a client leaves, the engine's connection closes, though it is silent."""
    with moment.reached(patient.url, engine, CHAT) as (client, connection):
        assert not connection.peer_closed.is_set()
        leave(client)
        assert connection.peer_closed.wait(SOON)
    engine.answer_with(reply())
    assert post(patient.url, CHAT.path, CHAT.body()).status == 200


@pytest.mark.parametrize("api", EVERY, ids=named)
def test_every_endpoint_lets_go(patient: GatewayProcess, engine: RawEngine, api: Api) -> None:
    """What holds for chats holds for every endpoint."""
    with Moment(streaming=api is not EMBEDDINGS).reached(patient.url, engine, api) as call:
        call[0].close()
        assert call[1].peer_closed.wait(SOON)


def test_upstream_lets_go(
        patient: GatewayProcess, engine: RawEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GET below /upstream has no body, but it has a client."""
    asked = threading.Event()
    monkeypatch.setattr(engine, "probe_script", [mark(asked), silence])
    with RawClient(patient.url) as client:
        client.send(b"GET /upstream/m/slots HTTP/1.1\r\nHost: x\r\n\r\n")
        assert asked.wait(10)
    assert engine.connections[-1].peer_closed.wait(SOON)


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
def test_an_engine_in_full_flow_is_let_go(
        patient: GatewayProcess, engine: RawEngine, leave: Leave) -> None:
    """One that sends without a pause cannot send on."""
    engine.answer_with([send(head_for("chunked")), endless(ev("x"))])
    with RawClient(patient.url) as client:
        read_up_to(ask(client), 10000)
        leave(client)
        wait_until(lambda: let_go(engine.connections[0]), "the engine to be let go", SOON)


def test_a_client_that_leaves_at_once(patient: GatewayProcess, engine: RawEngine) -> None:
    """Whether or not the engine was asked by then, it is not kept."""
    engine.answer_with(silence)
    for leave in itertools.islice(itertools.cycle(LEAVING.values()), 60):
        with RawClient(patient.url) as client:
            send_request(client)
            leave(client)
    wait_until(lambda: all(c.peer_closed.is_set() for c in engine.connections),
               "all of the engine's connections to be closed", 5)
    engine.answer_with(reply())
    assert post(patient.url, CHAT.path, CHAT.body()).status == 200


def test_more_bytes_are_no_departure(patient: GatewayProcess, engine: RawEngine) -> None:
    """A client may send its next request before it has read the answer to the first."""
    go_on = threading.Event()
    engine.answer_with([send(head_for("chunked")), chunks(TWO), hold(go_on),
                        chunks(STOP + DONE, b"")], reply())
    with RawClient(patient.url) as client:
        answer = ask(client)
        assert read_up_to(answer, len(TWO)) == TWO
        send_request(client, stream=False)
        go_on.set()
        assert answer.body == TWO + STOP + DONE
        assert client.answer().status == 200
    assert len(engine.requests) == 2


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
def test_an_engine_that_does_not_read_is_let_go(
        shared_engine: RawEngine, stream_home: RegistryHome, leave: Leave,
        tmp_path_factory: pytest.TempPathFactory) -> None:
    """A thread that cannot get a large request out to its engine is freed as well."""
    with DeafEngine() as deaf:
        settings = settings_for(shared_engine, stream_home, {"threads": 2}, **{
            "read-timeout": "5m", "connect-timeout": "5m"})
        settings["loop"]["engines"].append({"url": deaf.url, "models": ["deaf"]})
        with GatewayProcess(tmp_path_factory.mktemp("deaf"), settings) as gateway:
            facts = WorkerFacts(gateway)
            before, size = facts.descriptors(), 30_000_000
            with RawClient(gateway.url) as client:
                send_request(client, Api(**{**vars(CHAT), "ask": {
                    "model": "deaf", **CHAT.ask, "x": "y" * size}}))
                sock = deaf.accept()
                leave(client)
                wait_until(lambda: facts.descriptors() <= before + 1, "its sockets to close", 5)
            assert len(take(sock, size)) < size


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
def test_a_client_that_leaves_late_takes_nothing_along(
        patient: GatewayProcess, engine: RawEngine, leave: Leave) -> None:
    """The engine that it had is done with it, and works for another on the same connection."""
    large = b'{"x":"' + b"y" * 30_000_000 + b'"}'  # more than the sockets between them hold
    asked, go_on = threading.Event(), threading.Event()
    engine.answer_with(reply(200, large), [mark(asked), hold(go_on), reply()])
    with RawClient(patient.url) as late, RawClient(patient.url) as other:
        ask(late, stream=False)
        send_request(other, stream=False)
        assert asked.wait(10)
        assert [request.connection for request in engine.requests] == [1, 1]
        leave(late)
        assert not engine.connections[0].peer_closed.wait(0.3)
        go_on.set()
        assert other.answer().status == 200


def test_the_next_user_of_a_connection_is_not_harmed(
        patient: GatewayProcess, engine: RawEngine) -> None:
    """Clients that leave as their stream ends do not cut another's, whose connection was theirs."""
    pieces = [ev("1"), STOP, DONE]
    body = b"".join(pieces)
    engine.answer_with(stream("chunked", pieces))

    def leave_at_the_end(turn: int) -> list[int]:
        broken = []
        for number in range(60):
            with RawClient(patient.url) as client:
                read_up_to(ask(client), len(body))
                list(LEAVING.values())[(turn + number) % 3](client)
            with RawClient(patient.url) as client:
                answer = ask(client)
                if (answer.status, answer.body, answer.cut) != (200, body, False):
                    broken.append(number)
        return broken
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(leave_at_the_end, range(8))) == [[]] * 8
    assert len({request.connection for request in engine.requests}) < len(engine.requests) / 2
