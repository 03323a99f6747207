"""What an engine refuses, and when it fails: statuses and texts of the Ollama API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.engine_steps import JSON_TYPE, close, reply, reset, send, silence
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.stream_steps import data, stream
from tests.server.calls import JSON, ollama_error, post, to_bytes
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import CHAT, EMBED, GENERATE, WORK, asked, chat, generate
from tests.server.ollama.engine_answers import failing
from tests.server.ollama.ndjson import success
from tests.server.ollama.served_models import EMBEDDER, GONE, OTHER, TALKER, TOOLER

each_route = pytest.mark.parametrize("route", WORK)
PAGE = b"<html><head><style>p {}</style></head><body><h1>Bad <b>gateway</b></h1></body></html>"
HTML = [("Content-Type", "text/html")]
MMPROJ = "hint: if this is unexpected, you may need to provide the mmproj"
TEMPLATE_ERROR = ("\n------------\nWhile executing CallExpression at line 19, column 27 in source:"
                  "\n...% 2 == 0) -%}↵    {{ raise_exception(\"Conversation roles must alternate"
                  "\n^\nError: Jinja Exception: Conversation roles must alternate user/assistant/")


def work(gateway: GatewayProcess, route: str, **fields: Any) -> RawAnswer:
    """A request that makes an engine work."""
    return post(gateway.url, route, {**WORK[route], **fields})


REFUSED: dict[str, tuple[Step, int, str]] = {
    **{str(status): (failing(status, "boom"), status, "boom")
       for status in (400, 402, 404, 405, 408, 409, 413, 415, 422, 429, 503)},
    **{str(status): (failing(status, "boom"), 502, f"the engine answered {status}: boom")
       for status in (500, 502, 504, 507, 599)},
    "page": (reply(502, PAGE, HTML), 502, "the engine answered 502: Bad gateway"),
    "400_page": (reply(400, PAGE, HTML), 400, "Bad gateway"),
    "200_page": (reply(200, PAGE, HTML), 502, "the engine answered 200: Bad gateway"),
    "text": (reply(400, b"no way", [("Content-Type", "text/plain")]), 400, "no way"),
    "detail": (reply(422, b'{"detail":"x"}'), 422, '{"detail":"x"}'),
    "error_text": (reply(400, b'{"error":"x"}'), 400, "x"),
    "unicode": (failing(400, "北😀 <b>&"), 400, "北😀 <b>&"),
    "empty": (reply(400, b""), 400, "the engine answered 400"),
    "redirect": (reply(302, b"", [("Location", "/x")]), 502, "the engine answered 302"),
}


@each_route
@pytest.mark.parametrize(("step", "status", "text"), REFUSED.values(), ids=REFUSED)
def test_what_an_engine_refuses_is_told(
        gateway: GatewayProcess, engine: RawEngine, route: str, step: Step, status: int,
        text: str) -> None:
    """In its own words, without its markup; its 4xx and 503 stay, it is asked once."""
    engine.answer_with(step)
    answer = work(gateway, route)
    assert answer.status == status
    assert ollama_error(answer).startswith(text) and "<b>Bad" not in ollama_error(answer)
    assert len(engine.requests) == 1


@each_route
@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_the_gateways(
        gateway: GatewayProcess, engine: RawEngine, route: str, status: int) -> None:
    """Home Assistant would ask its user for another password."""
    engine.answer_with(failing(status, "Invalid API Key", "authentication_error"))
    answer = work(gateway, route)
    assert (answer.status, bool(ollama_error(answer))) == (502, True)
    assert not answer.all("WWW-Authenticate")


@each_route
def test_what_an_engine_cannot_do_the_model_does_not_support(
        gateway: GatewayProcess, engine: RawEngine, route: str) -> None:
    """The request is wrong; the server is not."""
    engine.answer_with(failing(501, "not here", "not_supported_error"))
    answer = work(gateway, route)
    assert answer.status == 400
    assert ollama_error(answer).startswith(f'"{WORK[route]["model"]}" does not support ')


CLIENTS_FAULT = [
    f"image input is not supported - {MMPROJ}", f"audio input is not supported - {MMPROJ}",
    "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error",
    "Failed to parse messages: Missing 'role' in message: {}",
    "Failed to parse tools: Unsupported tool type: x; tools = [{}]",
    TEMPLATE_ERROR,
    f"Unable to generate parser for this template. Automatic parser generation failed: "
    f"{TEMPLATE_ERROR}",
]


@pytest.mark.parametrize("stream_field", [True, False])
@pytest.mark.parametrize("text", CLIENTS_FAULT, ids=lambda text: text[:40])
def test_a_500_that_blames_the_request_is_a_400(
        gateway: GatewayProcess, engine: RawEngine, text: str, stream_field: bool) -> None:
    """llama-server says 500 to much that is the client's to put right."""
    engine.answer_with(failing(500, text))
    answer = chat(gateway.url, stream=stream_field)
    assert (answer.status, ollama_error(answer).strip()) == (400, text.strip())


BROKEN: dict[str, tuple[list[Step], str]] = {
    "close": ([close], "the connection to the engine failed"),
    "reset": ([reset], "the connection to the engine failed"),
    "half_a_head": ([send(b"HTTP/1.1 200 OK\r\nContent-Type: te"), close],
                    "the connection to the engine failed"),
    "no_http": ([send(b"hello\r\n\r\n"), close], "the connection to the engine failed"),
    "cut_document": ([send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                           b"Content-Length: 99\r\n\r\n{\"data\":"), close], ""),
    "no_json": ([reply(200, b"hello")], ""),
    "empty": ([reply(200, b"")], ""),
    "list": ([reply(200, b"[1]")], ""),
}


@each_route
@pytest.mark.parametrize(("script", "text"), BROKEN.values(), ids=BROKEN)
def test_an_engine_that_breaks_off_is_a_502(
        gateway: GatewayProcess, engine: RawEngine, route: str, script: list[Step],
        text: str) -> None:
    """Never a 200 with an error in it, never a 500."""
    engine.answer_with(script)
    answer = work(gateway, route)
    assert answer.status == 502 and ollama_error(answer).startswith(text)


FIRST: dict[str, tuple[bytes, int, str]] = {
    "error": (data({"error": {"code": 500, "message": "boom"}}), 502, "boom"),
    "clients_error": (data({"error": {"code": 400, "message": "too long"}}), 400, "too long"),
    "error_line": (b'error: {"code":500,"message":"boom"}\n\n', 502, "boom"),
    "no_json": (b"data: hello\n\n", 502, "JSON"),
    "page": (PAGE + b"\n\n", 502, ""),
}


@pytest.mark.parametrize("ask", [chat, generate], ids=["chat", "generate"])
@pytest.mark.parametrize(("event", "status", "text"), FIRST.values(), ids=FIRST)
def test_an_error_in_the_first_event_is_a_status(
        gateway: GatewayProcess, engine: RawEngine, ask: Callable[..., RawAnswer], event: bytes,
        status: int, text: str) -> None:
    """As long as no line has gone out, a client can be told so."""
    engine.answer_with(stream("chunked", [event]))
    answer = ask(gateway.url)
    assert answer.status == status and text in ollama_error(answer)


@each_route
def test_nothing_listens(gateway: GatewayProcess, route: str) -> None:
    """The address is told."""
    answer = work(gateway, route, model=GONE)
    assert (answer.status, ollama_error(answer)) == (
        502, "no engine is listening at http://127.0.0.1:1")


@each_route
def test_a_silent_engine_is_a_504(gateway: GatewayProcess, engine: RawEngine, route: str) -> None:
    """After as long as the configuration gives it."""
    engine.answer_with(silence)
    answer = work(gateway, route)
    assert (answer.status, ollama_error(answer)) == (
        504, "the engine did not answer within 1000 ms")


@each_route
@pytest.mark.parametrize("status", [429, 503])
def test_when_to_come_back(
        gateway: GatewayProcess, engine: RawEngine, route: str, status: int) -> None:
    """Is the engine's to say."""
    engine.answer_with(reply(status, b'{"error":{"message":"x"}}', [
        *JSON_TYPE, ("Retry-After", "7")]))
    answer = work(gateway, route)
    assert (answer.status, answer.header("Retry-After"), ollama_error(answer)) == (status, "7", "x")


TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def test_tools_for_a_template_without_tools(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The engine would silently leave them out."""
    answer = chat(gateway.url, tools=[TOOL])
    assert answer.status == 400 and ollama_error(answer).endswith("does not support tools")
    assert TALKER in ollama_error(answer) and engine.requests == []
    assert success(chat(gateway.url, model=TOOLER, tools=[TOOL]))


def test_a_chat_with_a_model_that_only_embeds(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Is refused before its engine makes nonsense of it."""
    answer = chat(gateway.url, model=EMBEDDER)
    assert answer.status == 400, answer.body
    assert ollama_error(answer) == f'"{EMBEDDER}" does not support chat'


def test_nobody_knows_what_another_make_can_do(gateway: GatewayProcess, other: RawEngine) -> None:
    """So it is asked, and says so itself."""
    assert success(chat(gateway.url, model=OTHER, tools=[TOOL]))
    assert asked(other)[0]["tools"] == [TOOL]


@pytest.mark.parametrize("path", [CHAT, GENERATE, EMBED])
def test_the_next_request_is_not_harmed(
        gateway: GatewayProcess, engine: RawEngine, path: str) -> None:
    """On the same connection as one that was refused and one whose engine broke."""
    engine.answer_with(failing(400, "no"), [close])
    with RawClient(gateway.url) as client:
        for status in (400, 502, 502):
            answer = client.request("POST", path, JSON, to_bytes(WORK[path])).whole()
            assert answer.status == status and json.loads(answer.body)["error"]
