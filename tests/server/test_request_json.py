"""Bodies that are no proper JSON: refused in the API's own words, unseen by the engine."""

from __future__ import annotations

import json

import pytest

from tests.fakes.raw_client import RawAnswer
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import (
    CHAT, CHAT_WITH, HELLO, SHOW, SHOW_WITH, error_text, openai_error, post,
)
from tests.server.gateway_process import GatewayProcess

ROUTES = [(CHAT, CHAT_WITH), (SHOW, SHOW_WITH)]
ROUTE_NAMES = ["chat", "show"]
WAYS = [*ROUTES, (CHAT, CHAT_WITH.replace(b'"m"', b'"short"'))]
WAY_NAMES = [*ROUTE_NAMES, "chat_by_alias"]

NO_VALUES = {
    "nan": b"NaN", "infinity": b"Infinity", "minus_infinity": b"-Infinity",
    "too_large": b"1e999", "too_small": b"-1e999", "too_large_in_a_list": b"[1,[2,1e999]]",
    "leading_zero": b"01", "plus": b"+1", "no_digit_before": b".5", "no_digit_after": b"1.",
    "hexadecimal": b"0x1", "undefined": b"undefined", "python_true": b"True",
    "comment": b"/**/1", "single_quotes": b"'a'", "bad_escape": b'"\\x41"',
    "short_escape": b'"\\u12"', "raw_newline": b'"a\nb"', "raw_nul": b'"a\0b"',
    "trailing_comma": b"[1,]", "missing": b"", "open_text": b'"a',
    "repeated_key": b'{"a":1,"a":1}', "repeated_deep_key": b'[{"b":{"c":1,"d":2,"c":3}}]',
    "repeated_escaped_key": b'{"a":1,"\\u0061":2}', "byte_ff": b'"\xff"',
    "cut_character": b'"\xe5\x8c"', "overlong": b'"\xc0\x80"', "surrogate": b'"\xed\xa0\x80"',
    "beyond_unicode": b'"\xf4\x90\x80\x80"', "bad_utf8_key": b'{"\xff":1}',
}
NO_OBJECTS = {
    "empty": b"", "spaces": b" \n", "list": b"[]", "null": b"null", "text": b'"x"',
    "number": b"5", "true": b"true", "nan": b"NaN", "words": b"hello", "form": b"model=m",
    "html": b"<html></html>", "nul": b"\0",
}


def is_refused(answer: RawAnswer, path: str, engine: RawEngine) -> None:
    """Check for a 400 in the shape of the path's API that the engine did not notice."""
    assert answer.status == 400, answer.body
    assert error_text(answer, path)
    if path == CHAT:
        error = openai_error(answer)
        assert (error["type"], error["param"], error["code"]) == (
            "invalid_request_error", None, None)
    assert engine.connections == []


@pytest.mark.parametrize(("path", "body"), ROUTES, ids=ROUTE_NAMES)
@pytest.mark.parametrize("value", NO_VALUES.values(), ids=NO_VALUES)
def test_a_value_that_is_no_json_is_refused(
        gateway: GatewayProcess, engine: RawEngine, path: str, body: bytes, value: bytes) -> None:
    """What a strict reader refuses, or two readers read differently, gets a 400."""
    is_refused(post(gateway.url, path, body % value), path, engine)


@pytest.mark.parametrize("path", [CHAT, SHOW], ids=ROUTE_NAMES)
@pytest.mark.parametrize("body", NO_OBJECTS.values(), ids=NO_OBJECTS)
def test_a_body_that_is_no_object_is_refused(
        gateway: GatewayProcess, engine: RawEngine, path: str, body: bytes) -> None:
    """An empty body, and JSON of another kind, get a 400."""
    is_refused(post(gateway.url, path, body), path, engine)


@pytest.mark.parametrize(("path", "body"), ROUTES, ids=ROUTE_NAMES)
@pytest.mark.parametrize("tail", [b"x", b"}", b"{}", b",", b"\0", b"\xef\xbb\xbf"])
def test_a_second_thing_after_the_object_is_refused(
        gateway: GatewayProcess, engine: RawEngine, path: str, body: bytes, tail: bytes) -> None:
    """A body is one JSON value and nothing after it."""
    is_refused(post(gateway.url, path, body % b"1" + tail), path, engine)


@pytest.mark.parametrize(("path", "body"), ROUTES, ids=ROUTE_NAMES)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_half_a_body_is_refused(
        gateway: GatewayProcess, engine: RawEngine, path: str, body: bytes, share: float) -> None:
    """JSON that ends too early gets a 400."""
    whole = body % b"1"
    is_refused(post(gateway.url, path, whole[:int(len(whole) * share)]), path, engine)


@pytest.mark.parametrize(("path", "body"), ROUTES, ids=ROUTE_NAMES)
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_only_utf8_is_read(gateway: GatewayProcess, engine: RawEngine, path: str, body: bytes,
                           encoding: str) -> None:
    """Engines read UTF-8 only, so a body in another encoding is none."""
    is_refused(post(gateway.url, path, (body % b"1").decode().encode(encoding)), path, engine)


@pytest.mark.parametrize(("path", "body"), ROUTES, ids=ROUTE_NAMES)
def test_a_byte_order_mark_does_no_harm(
        gateway: GatewayProcess, engine: RawEngine, path: str, body: bytes) -> None:
    """A mark in front is read over or refused, and nothing else."""
    answer = post(gateway.url, path, b"\xef\xbb\xbf" + body % b"1")
    assert answer.status == 200 or error_text(answer, path) and answer.status == 400


@pytest.mark.parametrize("body", [
    b'{"model":"m","model":"gone","messages":[{"role":"user","content":"hi"}]}',
    b'{"model":"m","messages":[{"role":"user","content":"hi"}],"model":"m"}',
    b'{"model":"m","mod\\u0065l":"gone","messages":[{"role":"user","content":"hi"}]}',
    b'{"model":"m","stream":true,"stream":false,"messages":[{"role":"user","content":"hi"}]}',
    b'{"model":"m","messages":[{"role":"user","content":"hi","role":"user"}]}',
    b'{"model":"m","messages":[{"role":"user","content":"hi","c\\u006fntent":"ho"}]}',
], ids=["other", "same", "escaped", "stream", "in_message", "escaped_in_message"])
def test_one_body_has_one_meaning(
        gateway: GatewayProcess, engine: RawEngine, body: bytes) -> None:
    """A repeated key never lets the gateway and the engine read different things."""
    is_refused(post(gateway.url, CHAT, body), CHAT, engine)


def test_a_repeated_model_is_refused_by_show(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The same holds for the other API."""
    is_refused(post(gateway.url, SHOW, b'{"model":"m","mod\\u0065l":"n"}'), SHOW, engine)


DEEP = {
    "lists_990": b"[" * 990 + b"]" * 990,
    "lists_5000": b"[" * 5000 + b"]" * 5000,
    "lists_100000": b"[" * 100_000 + b"]" * 100_000,
    "open_lists_100000": b"[" * 100_000,
    "objects_990": b'{"a":' * 990 + b"1" + b"}" * 990,
    "objects_5000": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "objects_100000": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "mixed_5000": b'[{"a":' * 2500 + b"1" + b"}]" * 2500,
}


@pytest.mark.parametrize(("path", "body"), WAYS, ids=WAY_NAMES)
@pytest.mark.parametrize("value", DEEP.values(), ids=DEEP)
def test_no_depth_harms_the_gateway(gateway: GatewayProcess, engine: RawEngine, path: str,
                                    body: bytes, value: bytes) -> None:
    """Nested as it may be, a body is refused or passed on, and the same worker goes on."""
    workers = gateway.workers()
    answer = post(gateway.url, path, body % value)
    assert answer.status in (200, 400), answer.body
    assert answer.status == 200 or error_text(answer, path)
    assert post(gateway.url, CHAT, HELLO).status == 200
    assert gateway.workers() == workers


@pytest.mark.parametrize("model", ["m", "short"])
def test_a_deep_schema_of_a_tool_does_no_harm(
        gateway: GatewayProcess, engine: RawEngine, model: str) -> None:
    """900 levels of parameters reach the engine whole, or get a 400."""
    parameters = b'{"items":' * 900 + b"{}" + b"}" * 900
    tools = b'[{"type":"function","function":{"name":"f","parameters":%b}}]' % parameters
    body = (CHAT_WITH % tools).replace(b'"x"', b'"tools"')
    answer = post(gateway.url, CHAT, body.replace(b'"m"', f'"{model}"'.encode()))
    if answer.status == 200:
        assert json.loads(engine.requests[0].body)["tools"] == json.loads(tools)
    else:
        is_refused(answer, CHAT, engine)


@pytest.mark.parametrize(("path", "body"), WAYS, ids=WAY_NAMES)
@pytest.mark.parametrize("value", [b"7" * 5000, b"-" + b"7" * 5000, b"1." + b"7" * 5000,
                                   b'"\\ud800"', b'{"\\udfff":1}', b'"\\u0000"'],
                         ids=["digits", "minus", "fraction", "high", "low_key", "nul"])
def test_odd_but_legal_values_do_no_harm(gateway: GatewayProcess, engine: RawEngine, path: str,
                                         body: bytes, value: bytes) -> None:
    """What the grammar allows and libraries stumble over is passed on or refused."""
    answer = post(gateway.url, path, body % value)
    assert answer.status in (200, 400), answer.body
    assert answer.status == 200 or error_text(answer, path)
