"""Answers that are no streams: whole, or an error; nothing that broke off looks whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.engine_steps import JSON_TYPE, close, head, reply, reset, send, silence
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.stream_steps import CHUNKED, CLOSING
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT, EMBEDDINGS, EVERY, Api, named
from tests.server.stream.asking import HTTP_10, HTTP_11, ask
from tests.server.stream.outcome import REFUSED, SUCCESS, outcome, refusal

Script = Callable[[bytes], list[Step]]
PAGE = b"<html><head><title>Oops</title></head><body>nothing <b>here</b></body></html>"


def _announced(body: bytes, length: int) -> Step:
    return send(head(200, [*JSON_TYPE, ("Content-Length", str(length))]) + body)


def _begun(body: bytes, size: int) -> Step:
    """A chunk of this size, of which only `body` comes."""
    return send(head(200, [*JSON_TYPE, *CHUNKED]) + b"%x\r\n" % size + body)


def _unframed(body: bytes) -> Step:
    return send(head(200, [*JSON_TYPE, *CLOSING]) + body)


def _half(body: bytes) -> bytes:
    return body[:len(body) // 2]


def _half_character(body: bytes) -> bytes:
    return _half(body).rstrip() + b"\xe5\x8c"


FAULTS: dict[str, Script] = {
    "reset_in_the_body": lambda body: [_announced(_half(body), len(body)), reset],
    "close_in_the_body": lambda body: [_announced(_half(body), len(body)), close],
    "close_before_the_last_byte": lambda body: [_announced(body[:-1], len(body)), close],
    "whole_but_longer_announced": lambda body: [_announced(body, len(body) + 1), close],
    "close_in_a_chunk": lambda body: [_begun(_half(body), len(body)), close],
    "reset_in_a_chunk": lambda body: [_begun(_half(body), len(body)), reset],
    "close_before_the_last_chunk": lambda body: [_begun(body + b"\r\n", len(body)), close],
    "chunk_size_broken": lambda body: [_begun(body + b"\r\nZZ\r\n", len(body)), close],
    "close_after_the_head": lambda body: [_announced(b"", len(body)), close],
    "unframed_reset": lambda body: [_unframed(_half(body)), reset],
    "page": lambda body: [reply(200, PAGE, [("Content-Type", "text/html")])],
    "page_with_charset": lambda body: [
        reply(200, PAGE, [("Content-Type", "Text/HTML; charset=utf-8")])],
    "page_as_502": lambda body: [reply(502, PAGE, [("Content-Type", "text/html")])],
    "error_as_500": lambda body: [reply(500, b'{"error":{"message":"boom"}}')],
}
# The framing is right and the JSON is not: only who looks into it can tell.
HALF_JSON: dict[str, Script] = {
    "half_with_its_length": lambda body: [_announced(_half(body), len(_half(body)))],
    "half_character_with_its_length": lambda body: [reply(200, _half_character(body))],
    "length_too_small": lambda body: [_announced(body, len(body) - 1)],
    "half_unframed": lambda body: [_unframed(_half(body)), close],
    "half_character_unframed": lambda body: [_unframed(_half_character(body)), close],
    "nothing_unframed": lambda body: [_unframed(b""), close],
}


def is_refused(gateway: GatewayProcess, engine: RawEngine, api: Api, script: list[Step],
               status: int, version: str = HTTP_11) -> str:
    """One call that fails with this status and an error of its API, and one that works."""
    engine.answer_with(script, reply(200, api.whole))
    with RawClient(gateway.url) as client:
        answer = ask(client, api, version, stream=False).whole()
        assert answer.status == status, (answer.status, answer.body)
        assert outcome(api, answer) == REFUSED and not client.was_reset
    engine.answer_with(reply(200, api.whole))
    with RawClient(gateway.url) as client:
        after = ask(client, api, stream=False)
        assert outcome(api, after) == SUCCESS and after.body == api.whole
    return str(refusal(api, answer)["message"])


@pytest.mark.parametrize("script", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("api", EVERY, ids=named)
def test_an_answer_that_breaks_off_is_a_502(
        gateway: GatewayProcess, engine: RawEngine, api: Api, script: Script) -> None:
    """No part of it reaches the client, on whatever endpoint it was."""
    if not api.path.startswith("/v1") and script in (FAULTS["page_as_502"], FAULTS["error_as_500"]):
        pytest.skip("what a native endpoint says passes as it is: test_endpoints")
    message = is_refused(gateway, engine, api, script(api.whole), 502)
    assert "<" not in message and "Traceback" not in message


@pytest.mark.parametrize("script", HALF_JSON.values(), ids=HALF_JSON)
@pytest.mark.parametrize("api", EVERY, ids=named)
def test_a_json_answer_that_is_none_is_a_502(
        gateway: GatewayProcess, engine: RawEngine, api: Api, script: Script) -> None:
    """Half a document that calls itself application/json is not passed on as if it were whole."""
    is_refused(gateway, engine, api, script(api.whole), 502)


def test_a_long_answer_that_ends_in_the_midst_is_a_502(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """The last byte that came may be one that a whole document could end with."""
    long = b'{"object":"list","data":[' + b",".join([b'{"index":0,"embedding":[0.5]}'] * 1000)
    engine.answer_with([_unframed(long), close])
    with RawClient(gateway.url) as client:
        assert outcome(EMBEDDINGS, ask(client, EMBEDDINGS, stream=False)) == REFUSED


@pytest.mark.parametrize("silent", [
    lambda body: [silence], lambda body: [_announced(_half(body), len(body)), silence],
    lambda body: [_begun(body + b"\r\n", len(body)), silence],
], ids=["at_once", "in_the_body", "before_the_last_chunk"])
def test_an_answer_that_stalls_is_a_504(
        gateway: GatewayProcess, engine: RawEngine, silent: Script) -> None:
    """Silence longer than the read timeout, wherever it begins."""
    message = is_refused(gateway, engine, CHAT, silent(CHAT.whole), 504)
    assert message == "the engine did not answer within 1000 ms"


@pytest.mark.parametrize("script", FAULTS.values(), ids=FAULTS)
def test_older_clients_get_the_same(
        gateway: GatewayProcess, engine: RawEngine, script: Script) -> None:
    """HTTP/1.0 and HTTP/1.1 differ in framing only."""
    is_refused(gateway, engine, CHAT, script(CHAT.whole), 502, HTTP_10)


@pytest.mark.parametrize("version", [HTTP_11, HTTP_10])
@pytest.mark.parametrize("api", EVERY, ids=named)
def test_a_whole_answer_is_passed_on(
        gateway: GatewayProcess, engine: RawEngine, api: Api, version: str) -> None:
    """In each of the three framings of HTTP."""
    body = api.whole
    framings: list[list[Step]] = [
        [_announced(body, len(body))], [_unframed(body), close],
        [_begun(body + b"\r\n0\r\n\r\n", len(body))]]
    for script in framings:
        engine.answer_with(script)
        with RawClient(gateway.url) as client:
            answer = ask(client, api, version, stream=False)
            assert outcome(api, answer) == SUCCESS
            assert answer.body == body
            assert answer.header("Content-Length") == str(len(body))
