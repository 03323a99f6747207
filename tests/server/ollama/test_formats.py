"""A schema that an answer is held to: refused where the engine would refuse it, drop it or die."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.engine_steps import silence
from tests.fakes.raw_engine import RawEngine, Step
from tests.server.calls import ollama_error
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import asked, chat, generate, sent
from tests.server.ollama.engine_answers import LLAMA_ROUTES, V1_CHAT, failing, routed
from tests.server.ollama.ndjson import success
from tests.server.ollama.served_models import FILLER, OTHER

BAD = {"type": "nonsense"}
TOLD = "Automatic parser generation failed: JSON schema error at #: unrecognized type nonsense"
PROMPTS: list[dict[str, Any]] = [
    {"raw": True}, {"template": "{{ .Prompt }}"}, {"context": [1]},
    {"model": FILLER, "suffix": "x"},
]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fields", PROMPTS, ids=repr)
def test_a_bad_schema_is_refused_without_a_chat_too(
        gateway: GatewayProcess, engine: RawEngine, fields: dict[str, Any], stream: bool) -> None:
    """In the engine's words, though its /completion would go on without the schema."""
    refusing = failing(400, TOLD, "invalid_request_error")
    engine.answer_with(routed({**LLAMA_ROUTES, "/apply-template": refusing, V1_CHAT: refusing}))
    answer = generate(gateway.url, format=BAD, stream=stream, **fields)
    assert (answer.status, ollama_error(answer)) == (400, TOLD)
    assert {request.path for request in engine.requests} == {"/apply-template"}
    [tried] = asked(engine, "/apply-template")
    assert tried["response_format"]["json_schema"]["schema"] == BAD
    answer = generate(gateway.url, format=BAD, stream=stream)
    assert (answer.status, ollama_error(answer)) == (400, TOLD)


@pytest.mark.parametrize("step", [
    failing(404, "File Not Found"), failing(500, "Value is not callable: null"),
    failing(501, "not supported"), failing(400, "roles must alternate")])
def test_a_trial_that_fails_for_another_reason(
        gateway: GatewayProcess, engine: RawEngine, step: Step) -> None:
    """Says nothing against the schema."""
    engine.answer_with(routed({**LLAMA_ROUTES, "/apply-template": step}))
    assert success(generate(gateway.url, raw=True, format={"type": "object"}))
    assert sent(engine, "/completion")["json_schema"] == {"type": "object"}


def test_a_trial_that_is_not_answered(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Is an engine that does not answer."""
    engine.answer_with(silence)
    answer = generate(gateway.url, raw=True, format={"type": "object"})
    assert (answer.status, ollama_error(answer)) == (
        504, "the engine did not answer within 1000 ms")


HUGE = {"type": "object", "properties": {"a": {"type": "array", "minItems": 10**9, "items": {}}}}
TOO_MUCH = "{}: minItems asks for more than 2000, the most that an engine can count"
TOOL = {"type": "function", "function": {"name": "f", "parameters": HUGE}}


@pytest.mark.parametrize("fields", [{}, *PROMPTS], ids=repr)
def test_a_schema_that_would_take_all_memory(
        gateway: GatewayProcess, engine: RawEngine, fields: dict[str, Any]) -> None:
    """Reaches no engine; the refusal names the keyword and the limit."""
    answer = generate(gateway.url, format=HUGE, **fields)
    assert (answer.status, ollama_error(answer)) == (400, TOO_MUCH.format("format"))
    answer = chat(gateway.url, format=HUGE)
    assert (answer.status, ollama_error(answer)) == (400, TOO_MUCH.format("format"))
    assert engine.requests == []


def test_another_make_gets_it_as_it_is(gateway: GatewayProcess, other: RawEngine) -> None:
    """It may count further, and refuses in its own words what it cannot."""
    assert success(chat(gateway.url, model=OTHER, format=HUGE, tools=[TOOL]))
    body = sent(other)
    assert body["response_format"]["json_schema"]["schema"] == HUGE and body["tools"] == [TOOL]
