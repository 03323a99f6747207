"""Errors of /v1/messages are in Anthropic's shape, whatever went wrong and whoever says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.engine_steps import JSON_TYPE, close, head, reply, send, silence
from tests.fakes.raw_client import RawAnswer, RawClient, fetch
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.registry_home import RegistryHome
from tests.server.calls import openai_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import MESSAGES
from tests.server.stream.conftest import settings_for
from tests.server.stream.outcome import refusal

LIMIT = 100_000
EACH_PATH = pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens",
                                             "/v1/messages?beta=true"])
BODY: dict[str, Any] = {"model": "m", **MESSAGES.ask}


@pytest.fixture(scope="module")
def bare(shared_engine: RawEngine, stream_home: RegistryHome,
         tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """A gateway with small limits, where no model is loaded."""
    settings = settings_for(
        shared_engine, stream_home, {"max-body": LIMIT, "body-timeout": "300ms"},
        **{"read-timeout": "300ms", "default-model": "loaded"})
    with GatewayProcess(tmp_path_factory.mktemp("bare"), settings) as process:
        yield process


def is_told(answer: RawAnswer, status: int, kind: str) -> str:
    """The error has this status and type; its message."""
    assert answer.status == status, (answer.status, answer.body)
    error = refusal(MESSAGES, answer)
    assert error["type"] == kind
    return str(error["message"])


@EACH_PATH
def test_none_loaded(bare: GatewayProcess, path: str) -> None:
    """503, with the time to come back."""
    answer = post(bare.url, path, MESSAGES.ask)
    assert is_told(answer, 503, "overloaded_error") == "no model is currently loaded"
    assert int(answer.header("Retry-After") or "") >= 0


REFUSED: dict[str, tuple[object, int, str]] = {
    "no_json": (b"{", 400, "invalid_request_error"),
    "no_object": (b"[]", 400, "invalid_request_error"),
    "model_twice": (b'{"model":"m","model":"n"}', 400, "invalid_request_error"),
    "model_of_a_wrong_type": ({**BODY, "model": 5}, 400, "invalid_request_error"),
    "stream_of_a_wrong_type": ({**BODY, "stream": "yes"}, 400, "invalid_request_error"),
    "unknown_model": ({**BODY, "model": "nope"}, 404, "not_found_error"),
    "too_large": (b" " * (LIMIT + 1), 413, "request_too_large"),
    "dead_engine": ({**BODY, "model": "gone"}, 502, "api_error"),
}


@EACH_PATH
@pytest.mark.parametrize(("body", "status", "kind"), REFUSED.values(), ids=REFUSED)
def test_what_the_gateway_refuses(
        bare: GatewayProcess, engine: RawEngine, path: str, body: object, status: int,
        kind: str) -> None:
    """Before an engine is asked."""
    is_told(post(bare.url, path, body), status, kind)
    assert engine.requests == []


FAULTS: dict[str, tuple[list[Step], int, str]] = {
    "500": ([reply(500, b'{"error":{"message":"boom"}}')], 502, "api_error"),
    "page": ([reply(200, b"<p>x</p>", [("Content-Type", "text/html")])], 502, "api_error"),
    "redirect": ([reply(301, b"")], 502, "api_error"),
    "close": ([close], 502, "api_error"),
    "cut": ([send(head(200, [*JSON_TYPE, ("Content-Length", "9")])), close], 502, "api_error"),
    "silence": ([silence], 504, "timeout_error"),
}


@EACH_PATH
@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("script", "status", "kind"), FAULTS.values(), ids=FAULTS)
def test_what_an_engine_does_wrong(
        bare: GatewayProcess, engine: RawEngine, path: str, script: list[Step], status: int,
        kind: str, streaming: bool) -> None:
    """In the gateway's words, in Anthropic's shape."""
    engine.answer_with(script)
    is_told(post(bare.url, path, {**BODY, "stream": streaming}), status, kind)


@EACH_PATH
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 503])
def test_what_an_engine_says_is_its_own(
        bare: GatewayProcess, engine: RawEngine, path: str, status: int) -> None:
    """An engine's 4xx and 503 pass unchanged."""
    said = b'{"type":"error","error":{"type":"own_error","message":"own"}}'
    engine.answer_with(reply(status, said, [*JSON_TYPE, ("Retry-After", "4")]))
    answer = post(bare.url, path, BODY)
    assert (answer.status, answer.body, answer.header("Retry-After")) == (status, said, "4")


@EACH_PATH
def test_a_body_that_does_not_come(bare: GatewayProcess, path: str) -> None:
    """Too slow, or cut short."""
    begun = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{{".encode()
    with RawClient(bare.url) as client:
        client.send(begun)
        is_told(client.answer(), 408, "invalid_request_error")
    with RawClient(bare.url) as client:
        client.send(f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "ZZ\r\n".encode())
        is_told(client.answer(), 400, "invalid_request_error")


@EACH_PATH
def test_another_method(bare: GatewayProcess, path: str) -> None:
    """405, and which would do."""
    answer = fetch(bare.url, "DELETE", path)
    is_told(answer, 405, "invalid_request_error")
    assert "POST" in str(answer.header("Allow"))


@pytest.mark.parametrize("path", ["/v1/messagesx", "/v1/chat/messages", "/v1/completions"])
def test_other_paths_keep_their_own_shape(bare: GatewayProcess, path: str) -> None:
    """Only what lies at /v1/messages is Anthropic's."""
    assert openai_error(post(bare.url, path, {**BODY, "model": "nope"}))["param"] == "model"
