"""What the engine gets: the client's own bytes, or the same values where the name must change."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.raw_client import fetch
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import CHAT, HELLO, JSON, SHOW, error_text, post
from tests.server.gateway_process import GatewayProcess

USER = '"messages":[{"role":"user","content":"hi"}]'
EXACT = (
    '{ "z":-0 ,"model" :\t"%s","seed":9007199254740993,\n\n"x":18446744073709551615,'
    '"f":0.10000000000000000001,"g":1E2, "h":-0.0,"i":1e-400,"j":5e-324,"k":1.0,"l":1E+2,'
    '"m":-9223372036854775809,"n":123456789012345678901234567890,"o":1.7976931348623157e308,'
    '"text":"\\u00e9 \\ud83d\\ude00 \\/ \\b\\u001f é 北😀","empty":{},"none":[ ],"nil":null,'
    '"deep":{"b":[1.50,{"a":true}],"a":0e5},' + USER + '}\r\n')


class Number(str):
    """A number as it was written."""


def numbers_kept(data: bytes) -> Any:
    """The JSON value in `data`: objects as lists of pairs, numbers as they were written."""
    return json.loads(data.decode(), parse_int=Number, parse_float=Number,
                      object_pairs_hook=lambda pairs: [list(pair) for pair in pairs])


def is_same(sent: Any, got: Any) -> bool:
    """Whether two values of `numbers_kept` are one: order, integers, doubles and their signs."""
    if isinstance(sent, Number):
        doubles = float(sent), float(got)
        exact = "." in sent or "e" in sent.lower() or Decimal(sent) == Decimal(got)
        signs = {math.copysign(1, double) for double in doubles}
        return isinstance(got, Number) and doubles[0] == doubles[1] and len(signs) == 1 and exact
    if isinstance(sent, list):
        return isinstance(got, list) and len(sent) == len(got) and all(map(is_same, sent, got))
    return type(sent) is type(got) and bool(sent == got)


def test_a_body_that_needs_no_change_is_not_touched(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Spacing, order, escapes and the spelling of numbers reach the engine as they are."""
    body = (EXACT % "m").encode()
    assert post(gateway.url, CHAT, body).status == 200
    assert engine.requests[0].body == body


def test_an_alias_changes_the_name_and_nothing_else(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """Key order, every integer and every number's double value stay."""
    assert post(gateway.url, CHAT, (EXACT % "short").encode()).status == 200
    sent, got = (EXACT % "m").encode(), engine.requests[0].body
    assert is_same(numbers_kept(sent), numbers_kept(got)), got


MESSAGES = {
    "developer": '{"role":"developer","content":"be brief"}',
    "parts": '{"role":"user","content":[{"type":"text","text":"what is this"},'
             '{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}',
    "calls_no_content": '{"role":"assistant","tool_calls":[{"id":"c1","type":"function",'
                        '"function":{"name":"f","arguments":"{}"}}]}',
    "null_content": '{"role":"assistant","content":null}',
    "empty_content": '{"role":"assistant","content":""}',
    "tool_parts": '{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"4"}]}',
    "unknown_keys": '{"role":"user","content":"hi","name":"Ann","cache_control":{"type":"x"}}',
    "number_content": '{"role":"user","content":5}',
    "no_content": '{"role":"user"}',
}
FIELDS = {
    "extensions": '"top_k":40,"min_p":0.05,"cache_prompt":true,"grammar":"root ::= x"',
    "tools": '"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto"',
    "nulls": '"temperature":null,"max_tokens":null,"stream":null',
    "limits": '"temperature":2,"max_tokens":1,"stream":false',
    "zero": '"temperature":0,"n":1,"stop":["a"],"logit_bias":{"5":-100}',
    "format": '"response_format":{"type":"json_schema","json_schema":{"name":"s"}}',
    "empty_key": '"":1," ":2',
}


@pytest.mark.parametrize("messages", [*MESSAGES.values(), ",".join(MESSAGES.values())],
                         ids=[*MESSAGES, "all"])
def test_every_message_that_openai_takes_is_passed_on(
        gateway: GatewayProcess, engine: RawEngine, messages: str) -> None:
    """What a strict schema would refuse reaches the engine byte for byte."""
    body = f'{{"model":"m","messages":[{messages}]}}'.encode()
    assert post(gateway.url, CHAT, body).status == 200
    assert engine.requests[0].body == body


@pytest.mark.parametrize("fields", FIELDS.values(), ids=FIELDS)
def test_every_field_is_passed_on(
        gateway: GatewayProcess, engine: RawEngine, fields: str) -> None:
    """Known fields with legal values and unknown ones reach the engine byte for byte."""
    body = f'{{"model":"m",{USER},{fields}}}'.encode()
    assert post(gateway.url, CHAT, body).status == 200
    assert engine.requests[0].body == body


@pytest.mark.parametrize("content_type", [
    "application/x-www-form-urlencoded", None, "text/plain", "application/json; charset=UTF-8",
    "APPLICATION/JSON", "multipart/form-data; boundary=x", "multipart/form-data", "x", "",
    "application/json; charset=utf-16"])
@pytest.mark.parametrize("path", [CHAT, SHOW])
def test_the_content_type_does_not_matter(
        gateway: GatewayProcess, engine: RawEngine, path: str, content_type: str | None) -> None:
    """A body is JSON whatever it is called, and the engine is told so."""
    headers = [] if content_type is None else [("Content-Type", content_type)]
    assert post(gateway.url, path, HELLO, headers).status == 200
    if path == CHAT:
        assert engine.requests[0].body == json.dumps(HELLO).encode()
        assert engine.requests[0].all("Content-Type") == ["application/json"]


@pytest.mark.parametrize("content_type", [
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
@pytest.mark.parametrize("path", [CHAT, SHOW])
def test_a_long_body_with_curls_content_type_works(
        gateway: GatewayProcess, engine: RawEngine, path: str, content_type: str) -> None:
    """600 KB called a form are more than a form parser takes."""
    body = {**HELLO, "x": "a" * 600_000}
    assert post(gateway.url, path, body, [("Content-Type", content_type)]).status == 200


def test_a_query_string_is_passed_on(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Some clients add a version to every URL; what it means is the engine's affair."""
    assert post(gateway.url, f"{CHAT}?api-version=2024-10-21", HELLO).status == 200
    assert engine.requests[0].path == f"{CHAT}?api-version=2024-10-21"


@pytest.mark.parametrize("path", [CHAT, SHOW])
def test_a_packed_body_is_refused(gateway: GatewayProcess, engine: RawEngine, path: str) -> None:
    """The gateway does not unpack requests, and says so instead of failing."""
    packed = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    answer = fetch(gateway.url, "POST", path, packed, [*JSON, ("Content-Encoding", "gzip")])
    assert answer.status in (400, 415)
    assert error_text(answer, path) and engine.connections == []


def picture(size: int) -> dict[str, Any]:
    """A message with a picture of `size` bytes of base64."""
    url = "data:image/png;base64," + "iVBORw0K" * (size // 8)
    return {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


def peak_memory(process: int) -> int:
    """The most memory in bytes that a process has had resident."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def test_a_picture_of_20_mb_reaches_the_engine(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """It arrives byte for byte, for less than six times its size in memory."""
    body = json.dumps({"model": "m", "messages": [picture(20_000_000)]}).encode()
    [worker] = gateway.workers()
    before = peak_memory(worker)
    assert post(gateway.url, CHAT, body).status == 200
    assert engine.requests[0].body == body
    assert peak_memory(worker) - before < 6 * len(body)


def test_a_picture_reaches_the_engine_by_alias(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """A long body is as right when the name has to change."""
    message = picture(20_000_000)
    assert post(gateway.url, CHAT, {"model": "short", "messages": [message]}).status == 200
    assert json.loads(engine.requests[0].body) == {"model": "m", "messages": [message]}
