"""An engine's own error answers: passed unchanged, or told in the gateway's words."""

from __future__ import annotations

import json

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import CHAT, HELLO, openai_error, post
from tests.server.gateway_process import GatewayProcess

ODD_BODY = b'{ "error" : {"message":"no\\u0020way \xe5\x8c\x97", "code":400, "param":null} }\r\n'


@pytest.mark.parametrize("status", [
    400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 418, 422, 429, 431, 451, 499, 503])
def test_4xx_and_503_pass_unchanged(
        gateway: GatewayProcess, engine: RawEngine, status: int) -> None:
    """Status, bytes, content type and Retry-After are the engine's, asked for once."""
    headers = [("Content-Type", "application/json;  charset=UTF-8"), ("Retry-After", "7")]
    engine.answer_with(reply(status, ODD_BODY, headers))
    answer = post(gateway.url, CHAT, HELLO)
    assert (answer.status, answer.body) == (status, ODD_BODY)
    assert answer.header("Content-Type") == headers[0][1]
    assert answer.header("Retry-After") == "7"
    assert answer.header("Content-Length") == str(len(ODD_BODY))
    assert len(engine.requests) == 1


@pytest.mark.parametrize("body", [b"", b"no JSON", b"[]"], ids=["empty", "text", "list"])
@pytest.mark.parametrize("status", [400, 429, 503])
def test_a_4xx_without_json_passes_too(
        gateway: GatewayProcess, engine: RawEngine, status: int, body: bytes) -> None:
    """The gateway does not judge what the engine says about the client's fault."""
    engine.answer_with(reply(status, body, [("Content-Type", "text/plain")]))
    answer = post(gateway.url, CHAT, HELLO)
    assert (answer.status, answer.body) == (status, body)
    assert answer.header("Content-Type") == "text/plain"


def llama_error(message: object) -> bytes:
    """llama-server's envelope."""
    return json.dumps({"error": {"code": 500, "message": message, "type": "server_error"}},
                      ensure_ascii=False).encode()


PAGE = (b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center>"
        b"<h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body></html>")
TEXTS = {
    "envelope": (llama_error("out of memory"), "out of memory"),
    "unicode": (llama_error("北😀 é"), "北😀 é"),
    "plain": (b"it broke", "it broke"),
    "long": (b"x" * 1000, "x" * 200),
    "long_unicode": ("é北".encode() * 300, "é北" * 100),
    "no_message": (b'{"error":{"code":500}}', '{"error":{"code":500}}'),
    "number": (llama_error(5), llama_error(5).decode()),
    "other_object": (b'{"detail":"x"}', '{"detail":"x"}'),
    "list": (b"[1]", "[1]"),
}


@pytest.mark.parametrize(("body", "text"), TEXTS.values(), ids=TEXTS)
def test_the_engines_words_are_told(
        gateway: GatewayProcess, engine: RawEngine, body: bytes, text: str) -> None:
    """Its error.message, else the first 200 characters of what it said."""
    engine.answer_with(reply(500, body))
    answer = post(gateway.url, CHAT, HELLO)
    assert answer.status == 502
    assert openai_error(answer) == {
        "message": f"the engine answered 500: {text}", "type": "server_error", "param": None,
        "code": "upstream_error"}


@pytest.mark.parametrize("status", [500, 501, 502, 504, 505, 507, 520, 599])
def test_every_5xx_but_503_is_a_502(
        gateway: GatewayProcess, engine: RawEngine, status: int) -> None:
    """The message carries the engine's own status, and the engine was asked once."""
    engine.answer_with(reply(status, llama_error("boom")))
    answer = post(gateway.url, CHAT, HELLO)
    assert (answer.status, openai_error(answer)["code"]) == (502, "upstream_error")
    assert openai_error(answer)["message"] == f"the engine answered {status}: boom"
    assert len(engine.requests) == 1


@pytest.mark.parametrize("page", [
    PAGE, PAGE * 50, b"<h1>502 Bad Gateway<script>alert(1)</script></h1>",
    b"<!-- x --><!DOCTYPE html><p>502 Bad Gateway<br/>"], ids=["page", "long", "script", "comment"])
def test_a_page_of_html_is_told_as_text(
        gateway: GatewayProcess, engine: RawEngine, page: bytes) -> None:
    """Tags are stripped from an error page, its words stay, 200 characters of them at most."""
    engine.answer_with(reply(502, page, [("Content-Type", "text/html")]))
    answer = post(gateway.url, CHAT, HELLO)
    message = openai_error(answer)["message"]
    assert answer.status == 502
    assert message.startswith("the engine answered 502: ") and "502 Bad Gateway" in message[24:]
    assert "<" not in message and len(message) <= len("the engine answered 502: ") + 200


HARD_BODIES = {
    "empty": b"", "bad_utf8": b"\xff\xfe caf\xe9", "nul": b"a\0b", "huge": b"x" * 5_000_000,
    "deep": b"[" * 100_000 + b"]" * 100_000, "open_tags": b"<" * 100_000,
    "deep_envelope": b'{"error":' * 50_000 + b"1" + b"}" * 50_000,
    "surrogate": b'{"error":{"message":"\\ud800"}}', "nan": b'{"error":{"message":NaN}}',
    "cut": llama_error("boom")[:-5],
}


@pytest.mark.parametrize("body", HARD_BODIES.values(), ids=HARD_BODIES)
def test_no_error_body_harms_the_gateway(
        gateway: GatewayProcess, engine: RawEngine, body: bytes) -> None:
    """Whatever a crashing engine says, the client gets a proper 502."""
    workers = gateway.workers()
    engine.answer_with(reply(500, body))
    answer = post(gateway.url, CHAT, HELLO)
    message = openai_error(answer)["message"]
    assert (answer.status, openai_error(answer)["code"]) == (502, "upstream_error")
    assert message.startswith("the engine answered 500")
    assert len(message) <= len("the engine answered 500: ") + 200
    assert gateway.workers() == workers
