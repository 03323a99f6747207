"""Juno's API with the real engine behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import ALIAS
from tests.engine.engine_process import EngineProcess
from tests.engine.gateway_with_engine import SHORT, gateway_with_engine
from tests.fakes.sse import read_events
from tests.server.calls import CHAT, post
from tests.server.gateway_process import GatewayProcess

pytestmark = pytest.mark.engine
MESSAGES = [{"role": "user", "content": "Hi"}]
GREEDY = {"greedy": True, "maxTokens": 4, "repetitionPenalty": 1.1}


@pytest.fixture(scope="module")
def gateway(shared_engine: EngineProcess, demo_home: Path,
            tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """The gateway that the tests here share."""
    directory = tmp_path_factory.mktemp("gateway")
    with gateway_with_engine(shared_engine, demo_home, directory) as process:
        yield process


def whole(gateway: GatewayProcess, **sampling: Any) -> dict[str, Any]:
    """An answer as one object."""
    answer = post(gateway.url, "/v1/inference", {
        "modelId": SHORT, "messages": MESSAGES, "sampling": sampling})
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


def test_a_stream_says_what_the_whole_answer_says(gateway: GatewayProcess) -> None:
    """The likeliest tokens are the same ones, one by one; the counts are the engine's own."""
    found = whole(gateway, **GREEDY)
    assert (found["tokenCount"], found["finishReason"], found["modelId"]) == (4, "length", SHORT)
    assert found["promptTokenCount"] > 5 and found["latencyMs"] > 0
    body = {"modelId": SHORT, "messages": MESSAGES, "sampling": GREEDY}
    answer = post(gateway.url, "/v1/inference/stream", body)
    *pieces, last = [event.json() for event in read_events(answer.body)[0]]
    assert len(pieces) > 1
    assert "".join(piece["token"] for piece in pieces) == found["text"]
    assert (last["isComplete"], last["finishReason"]) == (True, "length")


@pytest.mark.parametrize("sampling", [
    {"topK": 0, "topP": 0.0, "repetitionPenalty": 1}, {"topK": 50.0, "topP": 1, "temperature": 2}])
def test_it_takes_every_way_to_sample(
        gateway: GatewayProcess, sampling: dict[str, Any]) -> None:
    """The bounds of each field are good values."""
    assert whole(gateway, maxTokens=1, **sampling)["tokenCount"] == 1


def test_a_chat_takes_what_only_the_gateway_reads(gateway: GatewayProcess) -> None:
    """And the newer limit is the one that counts."""
    body = {"model": ALIAS, "messages": MESSAGES, "max_tokens": 3, "max_completion_tokens": 2,
            "x_juno_top_k": 0, "x_juno_session_id": "s", "x_juno_priority": "LOW"}
    answer = post(gateway.url, CHAT, body)
    assert answer.status == 200, answer.body
    assert answer.json()["usage"]["completion_tokens"] == 2
