"""POST /v1/inference: an engine's whole answer in Juno's words."""

from __future__ import annotations

import json
import time

import pytest

from tests.fakes.engine_steps import COMPLETION, JSON_TYPE, close, head, reply, send, silence
from tests.fakes.raw_engine import RawEngine, Script
from tests.fakes.stream_steps import STOP, ev, stream
from tests.server.calls import openai_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.juno.asking import HELLO, ID, STREAM, WHOLE

SAMPLING = {"temperature": 0.5, "topK": 0, "topP": 1, "repetitionPenalty": 1.10, "maxTokens": 512}


@pytest.mark.parametrize("model", ["m", "short", "M:latest"])
def test_an_answer_has_everything(
        gateway: GatewayProcess, engine: RawEngine, model: str) -> None:
    """The model by the name that was asked for; the time is that of the call."""
    begin = time.monotonic()
    answer = post(gateway.url, WHOLE, {**HELLO, "modelId": model})
    limit = (time.monotonic() - begin) * 1000 + 1
    assert (answer.status, answer.header("Content-Type")) == (200, "application/json")
    found = answer.json()
    assert list(found) == ["requestId", "text", "tokenCount", "promptTokenCount", "finishReason",
                           "modelId", "latencyMs"]
    assert 0 <= found["latencyMs"] <= limit and isinstance(found.pop("latencyMs"), int)
    assert found == {"requestId": ID, "text": "hi", "tokenCount": 2, "promptTokenCount": 3,
                     "finishReason": "stop", "modelId": model}


def test_the_engine_gets_one_chat(gateway: GatewayProcess, engine: RawEngine) -> None:
    """By its own names, and nothing of Juno's."""
    messages = [{"role": "system", "content": "é 北"}, {"role": "user", "content": "hi", "x": 1.50}]
    body = {**HELLO, "modelId": "short", "messages": messages, "sampling": SAMPLING,
            "x_juno_session_id": "s", "x_juno_priority": "LOW", "x_juno_top_k": 9}
    assert post(gateway.url, f"{WHOLE}?x=1", body).status == 200
    [request] = engine.requests
    assert request.path == "/v1/chat/completions"
    assert request.all("Content-Type") == ["application/json"]
    assert json.loads(request.body) == {
        "model": "m", "messages": messages, "temperature": 0.5, "top_p": 1, "top_k": 0,
        "max_tokens": 512, "repeat_penalty": 1.1, "stream": False}


FAULTS: dict[str, tuple[Script, int, str]] = {
    "500": (reply(500, b'{"error":{"message":"boom"}}'), 502, "upstream_error"),
    "page": (reply(200, b"<html>", [("Content-Type", "text/html")]), 502, "upstream_error"),
    "cut": ([send(head(200, [*JSON_TYPE, ("Content-Length", "99")]) + b"{"), close], 502,
            "upstream_error"),
    "half": (reply(200, COMPLETION[:-9]), 502, "upstream_error"),
    "other": (reply(200, b'{"content":"hi","stop":true}'), 502, "upstream_error"),
    "no_choice": (reply(200, b'{"choices":[]}'), 502, "upstream_error"),
    "no_text": (reply(200, b'{"choices":[{"message":{},"finish_reason":"stop"}]}'), 502,
                "upstream_error"),
    "no_reason": (reply(200, b'{"choices":[{"message":{"content":"x"}}]}'), 502,
                  "upstream_error"),
    "error": (reply(200, b'{"error":{"message":"boom"}}'), 502, "upstream_error"),
    "stream": (stream("chunked", [ev("a"), STOP]), 502, "upstream_error"),
    "silent": (silence, 504, "engine_timeout"),
}


@pytest.mark.parametrize(("script", "status", "code"), FAULTS.values(), ids=FAULTS)
def test_half_an_answer_is_none(gateway: GatewayProcess, engine: RawEngine, script: Script,
                                status: int, code: str) -> None:
    """What is no whole answer of the API is an error with its status."""
    engine.answer_with(script)
    answer = post(gateway.url, WHOLE, HELLO)
    assert answer.status == status
    assert openai_error(answer)["code"] == code
    engine.answer_with(reply())
    assert post(gateway.url, WHOLE, HELLO).status == 200


@pytest.mark.parametrize("path", [WHOLE, STREAM])
@pytest.mark.parametrize(("status", "told"), [(429, b'{"error":{"message":"slow"}}'),
                                              (503, b'{"error":{"message":"loading"}}'),
                                              (400, b'{"error":{"message":"too long"}}')])
def test_an_engines_refusal_passes(gateway: GatewayProcess, engine: RawEngine, path: str,
                                   status: int, told: bytes) -> None:
    """Status, bytes and the time to come back; it is asked once."""
    engine.answer_with(reply(status, told, [*JSON_TYPE, ("Retry-After", "7")]))
    answer = post(gateway.url, path, HELLO)
    assert (answer.status, answer.body, answer.header("Retry-After")) == (status, told, "7")
    assert len(engine.requests) == 1


@pytest.mark.parametrize("path", [WHOLE, STREAM])
def test_a_request_that_is_wrong_reaches_no_engine(
        gateway: GatewayProcess, engine: RawEngine, path: str) -> None:
    """Missing and empty messages, and a model that is not there."""
    for fields, param in (({"messages": []}, "messages"), ({"messages": None}, "messages"),
                          ({"modelId": None}, "modelId"),
                          ({"sampling": {"temperature": "x"}}, "sampling.temperature")):
        answer = post(gateway.url, path, {**HELLO, **fields})
        assert (answer.status, openai_error(answer)["param"]) == (400, param)
    assert engine.connections == []
