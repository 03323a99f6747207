"""Half a surrogate pair, as JSON can escape it, anywhere in a request: no engine gets to see it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.raw_client import RawAnswer
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import SHOW, ollama_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import CHAT, EMBED, EMBEDDINGS, GENERATE, HI, WORK
from tests.server.ollama.ndjson import success
from tests.server.ollama.served_models import OTHER, TOOLER

HALF = "\ud800"
WHOLE = "\ufffd"


def send(url: str, path: str, fields: dict[str, Any]) -> RawAnswer:
    """POST with every character that is not ASCII escaped."""
    return post(url, path, json.dumps({**WORK.get(path, {}), **fields}).encode("ascii"))


def nested(arguments: Any) -> dict[str, Any]:
    """A chat in which a tool was called with these arguments."""
    call = {"id": f"i{HALF}", "function": {"name": f"f{HALF}", "arguments": arguments}}
    return {"messages": [*HI, {"role": "assistant", "tool_calls": [call]},
                         {"role": "tool", "content": HALF, "tool_call_id": f"i{HALF}"}]}


PLACES: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {"messages": [{"role": "user", "content": f"a{HALF}b"}]}),
    (CHAT, {"messages": [{"role": HALF, "content": "x"}]}),
    (CHAT, nested({"a": {HALF: [HALF]}})),
    (CHAT, nested(r'{"a":["\ud800"]}')),
    (CHAT, {"options": {"stop": [HALF, "x"]}}),
    (CHAT, {"options": {"stop": HALF}}),
    (CHAT, {"format": {"type": "object", "properties": {HALF: {"enum": [HALF]}}}}),
    (CHAT, {"options": {"format": {"const": HALF}}}),
    (CHAT, {"model": TOOLER, "tools": [{"type": HALF, "function": {
        "name": "f", "description": HALF, "parameters": {"properties": {HALF: {}}}}}]}),
    (GENERATE, {"prompt": HALF}), (GENERATE, {"system": HALF}),
    (GENERATE, {"prompt": HALF, "raw": True}),
    (GENERATE, {"raw": True, "options": {"stop": [HALF]}}),
    (GENERATE, {"template": "%s{{ .Prompt }}" % HALF}),
    (GENERATE, {"model": OTHER, "suffix": HALF}),
    (GENERATE, {"model": OTHER, "raw": True, "format": {"const": HALF}}),
    (EMBED, {"input": HALF}), (EMBED, {"input": ["a", HALF]}), (EMBEDDINGS, {"prompt": HALF}),
]


@pytest.mark.parametrize(("path", "fields"), PLACES, ids=ascii)
def test_half_a_pair_is_replaced(gateway: GatewayProcess, engine: RawEngine, other: RawEngine,
                                 path: str, fields: dict[str, Any]) -> None:
    """As Go's decoder replaces it: what an engine gets is JSON that every reader takes."""
    answer = send(gateway.url, path, fields)
    assert answer.status == 200, answer.body
    requests = engine.requests + other.requests
    assert requests
    assert all(b"\\ud8" not in request.body.lower() for request in requests)
    assert any(WHOLE.encode() in request.body for request in requests)


@pytest.mark.parametrize(("path", "fields", "status", "text"), [
    (CHAT, {"format": HALF}, 400, f'invalid format: "\\"{WHOLE}\\""; expected '
                                  '"json" or a valid JSON Schema object'),
    (CHAT, {"think": HALF}, 400, f'invalid think value: "{WHOLE}" (must be "high", "medium", '
                                 '"low", "max", true, or false)'),
    (CHAT, {"model": HALF}, 404, f"model '{WHOLE}' not found"),
    (GENERATE, {"keep_alive": HALF}, 400, f'time: invalid duration "{WHOLE}"'),
    (SHOW, {"model": HALF}, 404, f"model '{WHOLE}' not found"),
], ids=ascii)
def test_an_error_names_what_was_made_of_it(
        gateway: GatewayProcess, engine: RawEngine, path: str, fields: dict[str, Any],
        status: int, text: str) -> None:
    """No half gets out again either."""
    answer = send(gateway.url, path, fields)
    assert (answer.status, ollama_error(answer)) == (status, text)
    assert engine.requests == []


def test_keys_of_the_request_itself(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Are those of no field that anyone knows."""
    assert success(send(gateway.url, CHAT, {HALF: 1, f"model{HALF}": "nope"}))
