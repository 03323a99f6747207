"""Every endpoint of an engine is reached at its own address, and its answer comes back as it is."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import pytest

from tests.fakes.engine_steps import COMPLETION, JSON_TYPE, close, hold, reply, reset, send
from tests.fakes.raw_client import RawClient, fetch
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.stream_steps import framed, head_for
from tests.fakes.wire import Headers
from tests.server.calls import JSON, get, openai_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.asking import read_up_to
from tests.server.stream.conftest import LONG_NAME

V1 = [
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/rerank", "/v1/reranking",
    "/v1/responses", "/v1/messages", "/v1/messages/count_tokens", "/v1/audio/speech",
    "/v1/audio/transcriptions", "/v1/images/generations", "/v1/images/edits", "/v1/moderations",
    "/v1/anything", "/v1/any/thing/deeper", "/v1/with%20space", "/v1/with%2Fslash:and.more",
]
NATIVE = [
    "/completion", "/infill", "/tokenize", "/detokenize", "/apply-template", "/embedding",
    "/rerank", "/reranking", "/chat/completions", "/completions", "/embeddings", "/responses",
]
# What every endpoint takes: the message for chats, the rest with values that are easily spoilt.
ODD = (b'{ "messages" : [{"role":"user","content":"h\\u00e9\\ud83d\\ude00"}] ,\n\t"model":"%b",'
       b'"seed":9007199254740993,"x":18446744073709551615,"f":0.10000000000000000001,"g":1E2,'
       b'"z":-0,"max_tokens":5,"a":null,"nested":{"model":"other","b":[1.0,1,{}]}, "e":""}')
EVERY_PATH = pytest.mark.parametrize("path", V1 + NATIVE)


def values(body: bytes) -> list[tuple[str, Any]]:
    """The fields of a body in their order, whole numbers exact and others as doubles."""
    pairs: list[tuple[str, Any]] = json.loads(
        body, object_pairs_hook=list, parse_int=lambda text: -0.0 if text == "-0" else int(text))
    return pairs


@EVERY_PATH
@pytest.mark.parametrize("query", ["", "?a=1&b=%2F%20x&a=2&c"])
def test_a_call_is_forwarded_as_it_is(
        gateway: GatewayProcess, engine: RawEngine, path: str, query: str) -> None:
    """Method, path, query, bytes and their type are the client's; the answer is the engine's."""
    answer = post(gateway.url, path + query, ODD % b"m",
                  [("Content-Type", "application/json; charset=UTF-8")])
    assert (answer.status, answer.body) == (200, COMPLETION)
    assert answer.header("Content-Type") == "application/json"
    [request] = engine.requests
    assert request.line == f"POST {path}{query} HTTP/1.1"
    assert request.body == ODD % b"m"
    assert request.all("Content-Type") in (
        ["application/json"], ["application/json; charset=UTF-8"])
    assert request.all("Content-Length") == [str(len(request.body))]
    assert request.all("Transfer-Encoding") == []


@EVERY_PATH
@pytest.mark.parametrize(("name", "sent"), [
    ("short", "m"), ("SHORT", "m"), ("M", "m"), (LONG_NAME.lower(), LONG_NAME)])
def test_another_name_changes_nothing_else(
        gateway: GatewayProcess, engine: RawEngine, path: str, name: str, sent: str) -> None:
    """The engine gets the name of the registry; order and values of all other fields are kept."""
    assert post(gateway.url, path, ODD % name.encode()).status == 200
    found, given = values(engine.requests[0].body), values(ODD % b"?")
    assert found == [(key, sent if key == "model" else value) for key, value in given]
    assert repr(found) == repr([(k, sent if k == "model" else v) for k, v in given])


@EVERY_PATH
@pytest.mark.parametrize("body", [
    b'{"model":"m","model":"gone","messages":[]}', b'{"model":"m","mod\\u0065l":"gone"}',
    b'{"model":"m","stream":true,"stream":false}', b'{"model":"m","a":NaN}', b'{"model":"m"',
    b"[]", b"null", b'"m"', b"model=m", b"\xff"],
    ids=["twice", "escaped", "stream_twice", "nan", "cut", "list", "null", "text", "form", "utf8"])
def test_a_body_that_can_be_read_two_ways_is_refused(
        gateway: GatewayProcess, engine: RawEngine, path: str, body: bytes) -> None:
    """What holds for chats holds for every endpoint: a 400, and the engine sees nothing."""
    answer = post(gateway.url, path, body)
    assert answer.status == 400
    if not path.startswith("/v1/messages"):
        assert openai_error(answer)["type"] == "invalid_request_error"
    assert engine.requests == []


@EVERY_PATH
@pytest.mark.parametrize(("headers", "mime"), [
    ([], "none"), ([("Content-Type", "application/x-www-form-urlencoded")], "form"),
    ([("Content-Type", "text/plain")], "text")])
def test_json_is_json_whatever_it_is_called(
        gateway: GatewayProcess, engine: RawEngine, path: str, headers: Headers,
        mime: str) -> None:
    """`curl -d` calls it a form; the engine is told what it is."""
    assert post(gateway.url, path, ODD % b"m", headers).status == 200
    [request] = engine.requests
    assert request.all("Content-Type") == ["application/json"], mime


@EVERY_PATH
def test_an_unknown_model_is_a_404(gateway: GatewayProcess, engine: RawEngine, path: str) -> None:
    """On every endpoint, before any engine is asked."""
    answer = post(gateway.url, path, ODD % b"nope")
    assert answer.status == 404
    if not path.startswith("/v1/messages"):
        error = openai_error(answer)
        assert (error["code"], error["param"]) == ("model_not_found", "model")
        assert error["message"] == "the model 'nope' does not exist"
    assert engine.requests == []


@pytest.mark.parametrize("path", ["/models", "/v1/models"])
def test_the_list_of_models_is_the_gateways(gateway: GatewayProcess, path: str) -> None:
    """Under both spellings."""
    listed = get(gateway.url, path).json()
    assert listed["object"] == "list"
    assert sorted(model["id"] for model in listed["data"]) == sorted(["m", LONG_NAME])


OWN: dict[str, tuple[int, Headers]] = {
    "501": (501, JSON_TYPE), "500": (500, JSON_TYPE), "404": (404, JSON_TYPE),
    "503": (503, [*JSON_TYPE, ("Retry-After", "9")]),
    "400_page": (400, [("Content-Type", "text/html")]),
    "201": (201, [("Content-Type", "text/plain"), ("X-Own", "1")]),
}


@pytest.mark.parametrize("path", NATIVE)
@pytest.mark.parametrize(("status", "headers"), OWN.values(), ids=OWN)
def test_native_endpoints_keep_what_the_engine_says(
        gateway: GatewayProcess, engine: RawEngine, path: str, status: int,
        headers: Headers) -> None:
    """They are the engine's API: its statuses and errors are not put in other words."""
    body = b'{"error":{"code":%d,"message":"not here","type":"not_supported_error"}}' % status
    engine.answer_with(reply(status, body, headers))
    answer = post(gateway.url, path, ODD % b"m")
    assert (answer.status, answer.body) == (status, body)
    assert [answer.header(name) for name, _ in headers] == [value for _, value in headers]


@pytest.mark.parametrize("path", [path for path in V1 if "messages" not in path])
def test_v1_puts_an_engines_501_in_its_own_words(
        gateway: GatewayProcess, engine: RawEngine, path: str) -> None:
    """Under /v1 a failure of the engine is the gateway's 502."""
    engine.answer_with(reply(501, b'{"error":{"message":"no such endpoint"}}'))
    answer = post(gateway.url, path, ODD % b"m")
    assert answer.status == 502
    assert openai_error(answer)["message"] == "the engine answered 501: no such endpoint"


SPEECH: Headers = [("Content-Type", "audio/mpeg")]


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_speech_is_heard_while_it_is_made(
        gateway: GatewayProcess, engine: RawEngine, framing: str) -> None:
    """A body that is neither text nor JSON arrives piece by piece, whatever its bytes."""
    first, second, heard = os.urandom(3000), bytes(range(256)) * 10, threading.Event()
    engine.answer_with([send(head_for(framing, len(first + second), SPEECH)),
                        send(framed(framing, first)), hold(heard), send(framed(framing, second)),
                        send(b"0\r\n\r\n" if framing == "chunked" else b""),
                        *([close] if framing == "close" else [])])
    with RawClient(gateway.url) as client:
        answer = client.request("POST", "/v1/audio/speech", JSON, b'{"model":"m","input":"hi"}')
        assert read_up_to(answer, len(first)) == first
        heard.set()
        assert answer.body == first + second and not answer.cut
    assert answer.header("Content-Type") == "audio/mpeg"


@pytest.mark.parametrize("way", [reset, close], ids=["reset", "close"])
def test_speech_that_breaks_off_does_not_look_whole(
        gateway: GatewayProcess, engine: RawEngine, way: Step) -> None:
    """Nothing can be said in the midst of a sound: its body has no proper end."""
    heard = threading.Event()
    engine.answer_with([send(head_for("chunked", 0, SPEECH) + framed("chunked", b"sound")),
                        hold(heard), way])
    with RawClient(gateway.url) as client:
        answer = client.request("POST", "/v1/audio/speech", JSON, b'{"model":"m","input":"hi"}')
        assert read_up_to(answer, 5) == b"sound"
        heard.set()
        assert answer.body == b"sound" and answer.cut


def test_a_picture_of_megabytes(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Images come back as one long JSON text."""
    body = b'{"data":[{"b64_json":"' + os.urandom(10_000_000).hex().encode() + b'"}]}'
    for script in ([reply(200, body)],
                   [send(head_for("chunked", 0, JSON_TYPE)),
                    *(send(framed("chunked", body[at:at + 65536]))
                      for at in range(0, len(body), 65536)), send(b"0\r\n\r\n")]):
        engine.answer_with(script)
        answer = post(gateway.url, "/v1/images/generations", {"model": "m", "prompt": "x"})
        assert answer.status == 200 and answer.body == body


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_other_methods_are_not_forwarded(
        gateway: GatewayProcess, engine: RawEngine, method: str) -> None:
    """An endpoint that takes POST says so, in JSON."""
    for path in ("/v1/completions", "/v1/embeddings", "/completion", "/tokenize"):
        answer = fetch(gateway.url, method, path)
        assert answer.status == 405
        assert "POST" in str(answer.header("Allow"))
        openai_error(answer)
    assert (engine.requests, engine.probes) == ([], [])
