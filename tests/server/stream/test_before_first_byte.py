"""What goes wrong before a stream begins is an ordinary answer with its own status."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.fakes.engine_steps import (
    COMPLETION, JSON_TYPE, close, head, hold, mark, reply, reset, send, silence,
)
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.stream_steps import DONE, STOP, ev, stream
from tests.server.calls import JSON, post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT, COMPLETIONS, MESSAGES, RESPONSES, Api, named
from tests.server.stream.asking import ask, send as send_request
from tests.server.stream.outcome import refusal

V1 = [CHAT, COMPLETIONS, MESSAGES, RESPONSES]
PAGE = b"<html><head><style>p {}</style></head><body><p>Bad <b>gateway</b></p></body></html>"
HTML = [("Content-Type", "text/html")]
TOO_LONG = b'{"error":{"code":400,"message":"too long"}}'
each_api = pytest.mark.parametrize("api", V1, ids=named)


def streaming(gateway: GatewayProcess, api: Api, **fields: Any) -> RawAnswer:
    """One call that asks for a stream, its answer whole."""
    return post(gateway.url, api.path, api.body(stream=True, **fields))


PASSED: dict[str, tuple[int, bytes, list[tuple[str, str]]]] = {
    "400": (400, TOO_LONG, JSON_TYPE),
    "400_with_charset": (400, TOO_LONG, [("Content-Type", "application/json; charset=utf-8")]),
    "400_as_text": (400, b"no", [("Content-Type", "text/plain")]),
    "400_as_page": (400, PAGE, HTML),
    "400_as_stream": (400, b'data: {"error":{"message":"too long"}}\n\n',
                      [("Content-Type", "text/event-stream")]),
    "401": (401, TOO_LONG, JSON_TYPE),
    "404": (404, TOO_LONG, JSON_TYPE),
    "429": (429, TOO_LONG, [*JSON_TYPE, ("Retry-After", "30"), ("X-Custom", "y"),
                            ("x-ratelimit-remaining-requests", "0")]),
    "503": (503, b'{"error":{"message":"Loading model"}}', [*JSON_TYPE, ("Retry-After", "7")]),
    "503_without_more": (503, b'{"error":{"message":"Loading model"}}', JSON_TYPE),
    "503_as_page": (503, PAGE, [*HTML, ("Retry-After", "Fri, 31 Dec 2027 23:59:59 GMT")]),
    "200_no_stream": (200, COMPLETION, JSON_TYPE),
}


@each_api
@pytest.mark.parametrize(("status", "body", "headers"), PASSED.values(), ids=PASSED)
def test_what_is_no_stream_is_passed_on(
        gateway: GatewayProcess, engine: RawEngine, api: Api, status: int, body: bytes,
        headers: list[tuple[str, str]]) -> None:
    """Status, bytes, type and the fields beside them are the engine's, asked for once."""
    engine.answer_with(reply(status, body, headers))
    answer = streaming(gateway, api)
    assert (answer.status, answer.body, answer.cut) == (status, body, False)
    assert [answer.all(name) for name, _ in headers] == [[value] for _, value in headers]
    assert len(engine.requests) == 1


FAILED: dict[str, tuple[list[Step], str]] = {
    "500": ([reply(500, b'{"error":{"code":500,"message":"boom"}}')],
            "the engine answered 500: boom"),
    "501": ([reply(501, b'{"error":{"message":"no such thing"}}')],
            "the engine answered 501: no such thing"),
    "502_page": ([reply(502, PAGE, HTML)], "the engine answered 502: Bad gateway"),
    "500_as_stream": ([reply(500, b"data: boom\n\n", [("Content-Type", "text/event-stream")])],
                      "the engine answered 500: data: boom"),
    "200_page": ([reply(200, PAGE, HTML)], "the engine answered 200: Bad gateway"),
    "redirect": ([reply(302, b"", [("Location", "/elsewhere")])], "the engine answered 302"),
    "close": ([close], "the connection to the engine failed"),
    "reset": ([reset], "the connection to the engine failed"),
    "half_a_head": ([send(b"HTTP/1.1 200 OK\r\nContent-Type: text/ev"), close],
                    "the connection to the engine failed"),
    "no_http": ([send(b"hello\r\n\r\n"), close], "the connection to the engine failed"),
}


@each_api
@pytest.mark.parametrize(("script", "message"), FAILED.values(), ids=FAILED)
def test_an_engine_that_fails_first_is_a_502(
        gateway: GatewayProcess, engine: RawEngine, api: Api, script: list[Step],
        message: str) -> None:
    """Never a 200 with an error hidden in it, and never the engine's markup."""
    engine.answer_with(script)
    answer = streaming(gateway, api)
    assert answer.status == 502
    assert refusal(api, answer)["message"].startswith(message)
    assert not answer.all("X-Accel-Buffering")


@each_api
def test_nothing_listens(gateway: GatewayProcess, api: Api) -> None:
    """A refused connection is a 502 that names the address."""
    answer = streaming(gateway, api, model="gone")
    assert answer.status == 502
    assert refusal(api, answer)["message"] == "no engine is listening at http://127.0.0.1:1"


@each_api
@pytest.mark.parametrize("model", ["nope", "org/nope:x"])
def test_an_unknown_model_is_a_404(gateway: GatewayProcess, engine: RawEngine, api: Api,
                                   model: str) -> None:
    """No engine is asked."""
    answer = streaming(gateway, api, model=model)
    assert answer.status == 404
    assert refusal(api, answer)["message"] == f"the model '{model}' does not exist"
    assert engine.requests == []


@pytest.mark.parametrize(("api", "script"), [
    (CHAT, [silence]), (MESSAGES, [send(b"HTTP/1.1 200 OK\r\n"), silence]),
], ids=["at_once", "in_the_head"])
def test_a_silent_engine_is_a_504(gateway: GatewayProcess, engine: RawEngine, api: Api,
                                  script: list[Step]) -> None:
    """Its read timeout counts before the first byte too."""
    engine.answer_with(script)
    answer = streaming(gateway, api)
    assert answer.status == 504
    assert refusal(api, answer)["message"] == "the engine did not answer within 1000 ms"


def test_a_slow_engine_is_waited_for(patient: GatewayProcess, engine: RawEngine) -> None:
    """The head comes when the engine's does, not before and not only with the first event."""
    asked, go_on = threading.Event(), threading.Event()
    engine.answer_with([mark(asked), hold(go_on), *stream("chunked", [STOP, DONE])])
    with RawClient(patient.url) as client:
        send_request(client)
        assert asked.wait(10)
        client.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)
        client.socket.settimeout(10)
        go_on.set()
        answer = client.answer("POST")
        assert (answer.status, answer.body) == (200, STOP + DONE)


def _stream_or_json(streams: bool) -> tuple[list[Step], bytes]:
    body = ev("a") + STOP + DONE
    return (stream("chunked", [body]), body) if streams else ([reply()], COMPLETION)


@pytest.mark.parametrize("streams", [True, False], ids=["stream", "whole"])
class TestKeptConnections:
    """An engine may close a connection that it has kept."""

    def chat(self, gateway: GatewayProcess, streams: bool) -> RawAnswer:
        """One chat on a connection of its own."""
        with RawClient(gateway.url) as client:
            return ask(client, stream=streams).whole()

    def test_a_dead_one_is_replaced(
            self, gateway: GatewayProcess, engine: RawEngine, streams: bool) -> None:
        """Closed without a byte of answer: the call is sent again, on a new connection."""
        script, body = _stream_or_json(streams)
        engine.answer_with(script, close, script)
        assert [self.chat(gateway, streams).body for _ in range(2)] == [body, body]
        assert [request.connection for request in engine.requests] == [1, 1, 2]

    def test_half_a_head_is_not_asked_for_again(
            self, gateway: GatewayProcess, engine: RawEngine, streams: bool) -> None:
        """The engine has begun to answer: a 502, and the call was sent once."""
        script, body = _stream_or_json(streams)
        engine.answer_with(script, [send(head(200, JSON)[:-9]), close], script)
        assert [self.chat(gateway, streams).status for _ in range(2)] == [200, 502]
        assert len(engine.requests) == 2
        assert self.chat(gateway, streams).body == body

    def test_an_engine_that_always_closes_is_tried_twice(
            self, gateway: GatewayProcess, engine: RawEngine, streams: bool) -> None:
        """Once on the kept connection, once on a new one."""
        engine.answer_with(_stream_or_json(streams)[0], close)
        assert [self.chat(gateway, streams).status for _ in range(2)] == [200, 502]
        assert len(engine.requests) <= 3
