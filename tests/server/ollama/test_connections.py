"""What an answer holds: one connection of the engine, for as long as the engine has to say more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.engine_steps import send, silence
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import Exchange, RawEngine
from tests.fakes.stream_steps import DONE, STOP, ev, framed, head_for
from tests.server.calls import JSON, to_bytes
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import CHAT, GENERATE, WORK, generate
from tests.server.ollama.engine_answers import COUNTS, LLAMA_ROUTES, V1_CHAT, routed
from tests.server.ollama.ndjson import arriving, content, success
from tests.server.ollama.served_models import OTHER

KEPT_OPEN = [send(head_for("chunked", 0)), *(
    send(framed("chunked", piece)) for piece in (ev("a"), STOP, COUNTS, DONE)), silence]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("path", "fields"), [
    (CHAT, {}), (CHAT, {"model": OTHER}), (GENERATE, {}), (GENERATE, {"raw": True}),
    (GENERATE, {"model": OTHER, "raw": True})], ids=repr)
def test_the_connection_serves_the_next_answer(
        gateway: GatewayProcess, engine: RawEngine, other: RawEngine, path: str,
        fields: dict[str, Any], stream: bool) -> None:
    """Also the questions for the context, which come once the answer is over."""
    body = to_bytes({**WORK[path], **fields, "stream": stream})
    with RawClient(gateway.url) as client:
        for _ in range(4):
            answer = client.request("POST", path, JSON, body).whole()
            assert answer.status == 200 and b'"done":true' in answer.body
    requests = engine.requests + other.requests
    assert len(requests) >= 4
    # One, unless a busy machine held an engine up for longer than its end is waited for.
    assert len({request.connection for request in requests}) <= 2


def test_an_engine_that_goes_on_saying_nothing(
        patient: GatewayProcess, engine: RawEngine) -> None:
    """The last line comes at once, the end of the body with it, and its connection is closed."""
    engine.answer_with(KEPT_OPEN)
    body = to_bytes(WORK[CHAT])
    with RawClient(patient.url) as client:
        for _ in range(2):
            *said, last = arriving(client.request("POST", CHAT, JSON, body))
            assert content(said) == "a" and last["done"] is True
            used = engine.requests[-1].connection
            assert engine.connections[used - 1].peer_closed.wait(20)
    assert len({request.connection for request in engine.requests}) == 2


@pytest.mark.parametrize("silent", ["/tokenize", "/apply-template"])
def test_the_context_is_not_waited_for(
        patient: GatewayProcess, engine: RawEngine, silent: str) -> None:
    """An engine that does not tell it is good for an answer without."""
    engine.answer_with(routed({**LLAMA_ROUTES, silent: silence}))
    said, last = success(generate(patient.url))
    assert "".join(line["response"] for line in said) == "Hello"
    assert "context" not in last and last["done_reason"] == "stop"


def test_an_engine_of_one_slot_can_tell_the_context(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """It is asked only once the connection of the answer is closed, where it is not used again."""
    open_ones: list[bool] = []

    def note(exchange: Exchange) -> None:
        answered = engine.connections[engine.requests[0].connection - 1]
        open_ones.append(not answered.peer_closed.wait(5))
        LLAMA_ROUTES["/apply-template"](exchange)  # type: ignore[operator]

    engine.answer_with(routed({**LLAMA_ROUTES, V1_CHAT: KEPT_OPEN, "/apply-template": note}))
    assert success(generate(gateway.url))[1]["context"]
    assert open_ones == [False]
