"""What an engine gets of a body with Juno's fields: everything else, and nothing of them."""

from __future__ import annotations

import json

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import DONE, STOP, ev, stream
from tests.server.calls import CHAT, HELLO, JSON, openai_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.test_uploads import BOUNDARY, form, part
from tests.server.test_request_forwarding import EXACT, is_same, numbers_kept

JUNOS = (b'"x_juno_priority":"HIGH"', b'"x_juno_session_id":"sess \\u00e9"',
         b'"x_juno_priority" : null', b'"x_juno_top_k":5,"top_k":7', b'"x_juno_top_k":null')
ENDPOINTS = [CHAT, "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages",
             "/v1/rerank", "/v1/anything", "/completion", "/completions", "/chat/completions",
             "/embeddings", "/tokenize"]


def with_fields(body: bytes, fields: bytes, first: bool) -> bytes:
    """The object with more fields at its beginning or its end."""
    if first:
        return body.replace(b"{", b"{" + fields + b",", 1)
    return body.rstrip().removesuffix(b"}") + b"," + fields + b"}"


@pytest.mark.parametrize("first", [True, False], ids=["first", "last"])
@pytest.mark.parametrize("model", ["m", "short"])
@pytest.mark.parametrize("fields", JUNOS)
def test_the_rest_of_the_body_keeps_its_values(
        gateway: GatewayProcess, engine: RawEngine, model: str, fields: bytes,
        first: bool) -> None:
    """Order, every integer and every number's double value, by an alias too."""
    body = with_fields((EXACT % model).encode(), fields, first)
    assert post(gateway.url, CHAT, body).status == 200
    [request] = engine.requests
    assert b"x_juno" not in request.body
    left = b'"top_k":7' if b'"top_k":7' in fields else b""
    sent = (EXACT % "m").encode()
    expected = with_fields(sent, left, first) if left else sent
    assert is_same(numbers_kept(expected), numbers_kept(request.body)), request.body
    assert request.all("Content-Length") == [str(len(request.body))]


@pytest.mark.parametrize("path", ENDPOINTS)
def test_every_endpoint_takes_them_out(
        gateway: GatewayProcess, engine: RawEngine, path: str) -> None:
    """``top_k`` is what stays of them."""
    body = {**HELLO, "x_juno_session_id": "s", "x_juno_priority": "LOW", "x_juno_top_k": 0}
    assert post(gateway.url, path, body).status == 200
    assert json.loads(engine.requests[0].body) == {**HELLO, "top_k": 0}


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_body_without_them_is_not_touched(
        gateway: GatewayProcess, engine: RawEngine, path: str) -> None:
    """Names that resemble theirs are an engine's own, whether deep or at the top."""
    body = (b'{ "model":"m","messages":[{"role":"user","content":"hi","x_juno_top_k":1}],'
            b' "X_Juno_Priority":1, "x_juno_loras":[], "max_tokens":5,"max_completion_tokens":5.0}')
    assert post(gateway.url, path, body).status == 200
    assert engine.requests[0].body == body


@pytest.mark.parametrize("fields", [b'"max_tokens":7', b'"max_completion_tokens":7',
                                    b'"max_tokens":7,"max_completion_tokens":7',
                                    b'"max_tokens":null,"max_completion_tokens":7',
                                    b'"max_tokens":7,"max_completion_tokens":null'])
@pytest.mark.parametrize("path", [CHAT, "/v1/completions"])
def test_a_limit_that_is_clear_is_not_touched(
        gateway: GatewayProcess, engine: RawEngine, path: str, fields: bytes) -> None:
    """One limit, or two that are the same."""
    body = with_fields(b'{"model":"m", "messages":[{"role":"user"}]}', fields, first=False)
    assert post(gateway.url, path, body).status == 200
    assert engine.requests[0].body == body


def test_a_key_that_is_repeated_is_still_refused(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """A field that is taken out has one value as well."""
    body = b'{"model":"m","messages":[{"role":"user"}],"x_juno_top_k":1,"x_juno_top\\u005fk":2}'
    answer = post(gateway.url, CHAT, body)
    assert (answer.status, openai_error(answer)["param"]) == (400, None)
    assert engine.connections == []


def test_a_form_has_none_of_them(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The bytes of a form are the client's own."""
    body = form(part("model", b"m"), part("x_juno_priority", b"URGENT"))
    headers = [("Content-Type", f"multipart/form-data; boundary={BOUNDARY}")]
    assert post(gateway.url, "/v1/audio/transcriptions", body, headers).status == 200
    assert engine.requests[0].body == body


def test_a_stream_passes_as_ever(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The engine's bytes, whatever was taken out of the request."""
    engine.answer_with(stream("chunked", [ev("1"), STOP, DONE]), reply())
    body = {**HELLO, "stream": True, "x_juno_session_id": "s"}
    assert post(gateway.url, CHAT, body, JSON).body == ev("1") + STOP + DONE
