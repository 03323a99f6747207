"""The gateway behind the nginx configuration that comes with it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.engine_steps import COMPLETION, chunks, reply, reset, send, silence
from tests.fakes.processes import wait_until_gone
from tests.fakes.raw_client import RawAnswer, RawClient, fetch
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.fakes.stream_steps import Gates, ev, head_for
from tests.server.calls import JSON, ollama_error, openai_error, post
from tests.server.gateway_process import GatewayProcess, free_port
from tests.server.stream.apis import CHAT, MESSAGES, STREAMING, Api, named
from tests.server.stream.asking import HTTP_10, HTTP_11, ask, read_up_to
from tests.server.stream.conftest import LONG_NAME, settings_for
from tests.server.stream.leaving import LEAVING, MOMENTS, Leave, Moment
from tests.server.stream.outcome import IN_BAND, last_error, outcome, refusal
from tests.server.stream.shipped_nginx import ShippedNginx

pytestmark = pytest.mark.nginx
SOON = 1.0


@pytest.mark.parametrize("version", [HTTP_11, HTTP_10])
@pytest.mark.parametrize("api", STREAMING, ids=named)
def test_streams_arrive_event_by_event(
        nginx: ShippedNginx, engine: RawEngine, api: Api, version: str) -> None:
    """The engine sends each event only after the client has the one before."""
    gates = Gates("chunked", [*api.events(4), api.end])
    engine.answer_with(gates.script)
    with RawClient(nginx.url) as client:
        answer = ask(client, api, version)
        for number, piece in enumerate(gates.pieces):
            assert read_up_to(answer, len(piece)) == piece
            gates.seen(number)
        assert answer.body == b"".join(gates.pieces) and not answer.cut
    assert answer.header("Cache-Control") == "no-cache"


@pytest.mark.parametrize("leave", [LEAVING["close"], LEAVING["reset"]], ids=["close", "reset"])
@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_a_client_that_leaves_nginx_leaves_the_engine(
        nginx: ShippedNginx, engine: RawEngine, moment: Moment, leave: Leave) -> None:
    """Two departures follow from the first, though nobody sends a byte."""
    with moment.reached(nginx.url, engine, CHAT) as (client, connection):
        assert not connection.peer_closed.is_set()
        leave(client)
        assert connection.peer_closed.wait(SOON)


def test_a_form_in_chunks_and_a_long_one(nginx: ShippedNginx, engine: RawEngine) -> None:
    """nginx has no limit of its own, and changes nothing."""
    body = b'{"model":"m","messages":[{"role":"user","content":"' + b"x" * 30_000_000 + b'"}]}'
    assert post(nginx.url, CHAT.path, body).body == COMPLETION
    assert engine.requests[0].body == body


@pytest.mark.parametrize("api", [CHAT, MESSAGES], ids=named)
def test_an_error_in_a_stream_is_seen(
        nginx: ShippedNginx, engine: RawEngine, api: Api) -> None:
    """The event arrives, and the body has a proper end."""
    sent = b"".join(api.events(2))
    gates = Gates("chunked", [sent])
    engine.answer_with([*gates.script[:-1], reset])
    with RawClient(nginx.url) as client:
        answer = ask(client, api)
        assert read_up_to(answer, len(sent)) == sent
        gates.seen(0)
        assert outcome(api, answer) == IN_BAND
        assert last_error(api, answer)["message"].startswith("the connection to the engine failed")


def test_statuses_and_their_fields_come_through(nginx: ShippedNginx, engine: RawEngine) -> None:
    """What the gateway or the engine says is not replaced by what nginx would say."""
    for status, sent in ((400, 400), (404, 404), (413, 413), (429, 429), (500, 502), (503, 503)):
        said = b'{"error":{"message":"own"}}'
        engine.answer_with(reply(status, said, [*JSON, ("Retry-After", "5")]))
        answer = post(nginx.url, CHAT.path, CHAT.body(stream=True))
        assert answer.status == sent
        if status == sent:
            assert (answer.body, answer.header("Retry-After")) == (said, "5")
        else:
            assert openai_error(answer)["message"] == "the engine answered 500: own"


@pytest.mark.parametrize("name", [LONG_NAME, LONG_NAME.replace("/", "%2F").replace(":", "%3A")])
def test_names_in_paths_are_not_touched(
        nginx: ShippedNginx, engine: RawEngine, name: str) -> None:
    """Encoded or not, and two slashes in a row."""
    answer = fetch(nginx.url, "POST", f"/upstream/{name}/a%2Fb//c?d=%20", b"{}")
    assert answer.status == 200
    assert engine.requests[0].path == "/a%2Fb//c?d=%20"
    assert fetch(nginx.url, "GET", f"/v1/models/{name}").json()["id"] == LONG_NAME


def test_the_request_id_is_one_from_end_to_end(nginx: ShippedNginx, engine: RawEngine) -> None:
    """The client's own, or one that nginx makes: the engine gets it, and the client is told."""
    for headers in ([("X-Request-Id", "mine-1")], []):
        engine.answer_with(reply())
        answer = post(nginx.url, CHAT.path, CHAT.body(), [*JSON, *headers])
        [told] = engine.requests[0].all("X-Request-Id")
        assert answer.header("X-Request-Id") == told
        assert told == "mine-1" if headers else len(told) >= 16


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ShippedNginx, RawEngine]]:
    """nginx before a scripted server in place of the gateway, which shows what nginx sends it."""
    with RawEngine(reply()) as server:
        port = int(server.url.rpartition(":")[2])
        with ShippedNginx(tmp_path_factory.mktemp("echo"), port) as nginx:
            yield nginx, server


def test_what_nginx_tells_the_gateway(echo: tuple[ShippedNginx, RawEngine]) -> None:
    """HTTP/1.1 on a kept connection, the client's address and host, and an id for the request."""
    nginx, server = echo
    for _ in range(3):
        assert post(nginx.url, CHAT.path, b"{}", [("X-Forwarded-For", "203.0.113.7")]).status == 200
    for request in server.requests:
        assert request.line == f"POST {CHAT.path} HTTP/1.1"
        assert request.all("X-Forwarded-For") == ["203.0.113.7, 127.0.0.1"]
        assert len(request.all("X-Request-Id")) == 1 and request.all("X-Request-Id")[0]
        assert request.all("Host") == [f"127.0.0.1:{nginx.port}"]
        assert request.all("Connection") == []
    assert len({id for request in server.requests for id in request.all("X-Request-Id")}) == 3
    assert len({request.connection for request in server.requests}) < 3


def test_a_call_is_never_sent_twice(echo: tuple[ShippedNginx, RawEngine]) -> None:
    """A gateway that dies with a call in its hands gets no second one."""
    nginx, server = echo
    server.answer_with(reset)
    assert openai_error(post(nginx.url, CHAT.path, b"{}"))["type"] == "server_error"
    assert len(server.requests) == 1


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShippedNginx]:
    """nginx, and nothing where the gateway should be."""
    with ShippedNginx(tmp_path_factory.mktemp("alone"), free_port()) as process:
        yield process


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", [
    "/v1/chat/completions", "/v1/models", "/api/chat", "/api/tags", "/v1/messages",
    "/v1/messages/count_tokens", "/completion", "/upstream/m/props", "/health", "/", "/nope"])
def test_nginx_alone_says_so_in_json(alone: ShippedNginx, method: str, path: str) -> None:
    """Without a gateway the error has the shape of the API that was called."""
    answer = fetch(alone.url, method, path, b"{}" if method == "POST" else None)
    assert answer.status in (502, 503)
    in_shape(answer, path)


def in_shape(answer: RawAnswer, path: str) -> None:
    """The error is one of the API that lies at this path."""
    if path.startswith("/api/"):
        ollama_error(answer)
    elif path.startswith("/v1/messages"):
        refusal(MESSAGES, answer)
    else:
        openai_error(answer)


BAD = {
    "no_host": "POST {path} HTTP/1.1\r\n\r\n",
    "long_line": "POST {path}?" + "x" * 70000 + " HTTP/1.1\r\nHost: x\r\n\r\n",
    "long_field": "POST {path} HTTP/1.1\r\nHost: x\r\nX: " + "x" * 70000 + "\r\n\r\n",
    "two_lengths": "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
                   "Content-Length: 2\r\n\r\n",
}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat", "/v1/messages"])
@pytest.mark.parametrize("request_text", BAD.values(), ids=BAD)
def test_what_nginx_refuses_is_refused_in_json(
        nginx: ShippedNginx, path: str, request_text: str) -> None:
    """A request that never reaches the gateway gets no page of nginx's either."""
    with RawClient(nginx.url) as client:
        client.send(request_text.format(path=path).encode())
        answer = client.answer().whole()
    assert 400 <= answer.status < 500
    assert answer.header("Content-Type") == "application/json"
    assert b"<html>" not in answer.body and answer.json()["error"]


class Mortal(GatewayProcess):
    """A gateway that a test may kill, so that its exit code says nothing."""

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kill(self) -> None:
        """End it without a word; blocks until it is gone."""
        workers = self.workers()
        self._process.kill()
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        wait_until_gone([self._process.pid, *workers])


def mortal(directory: Path, engine: RawEngine, home: RegistryHome, **server: object) -> Mortal:
    """A gateway of the test's own."""
    return Mortal(directory, settings_for(
        engine, home, {"threads": 4, **server}, **{"read-timeout": "5m"}))


def test_a_body_that_is_too_large_is_the_gateways_413(
        shared_engine: RawEngine, stream_home: RegistryHome, tmp_path: Path) -> None:
    """In the shape of each API."""
    with mortal(tmp_path, shared_engine, stream_home, **{"max-body": "1MiB"}) as gateway, \
            ShippedNginx(tmp_path, gateway.port) as nginx:
        for path in ("/v1/chat/completions", "/api/show", "/v1/messages", "/completion"):
            answer = post(nginx.url, path, b" " * (1024 * 1024 + 1))
            assert answer.status == 413
            in_shape(answer, path)
        large = b'{"model":"m","prompt":"' + b"x" * 1_000_000 + b'"}'
        shared_engine.answer_with(reply())
        assert post(nginx.url, "/v1/completions", large).status == 200


def test_a_gateway_that_is_killed_is_seen(
        shared_engine: RawEngine, stream_home: RegistryHome, tmp_path: Path) -> None:
    """A client in the midst of a stream sees that its body has no end."""
    shared_engine.answer_with([send(head_for("chunked")), chunks(ev("1")), silence])
    with mortal(tmp_path, shared_engine, stream_home) as gateway, \
            ShippedNginx(tmp_path, gateway.port) as nginx, RawClient(nginx.url) as client:
        answer = ask(client)
        assert read_up_to(answer, len(ev("1"))) == ev("1")
        gateway.kill()
        assert answer.body == ev("1") and answer.cut
        assert openai_error(post(nginx.url, CHAT.path, CHAT.body()))["type"] == "server_error"
