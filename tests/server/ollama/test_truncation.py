"""A chat that is too long for the engine: what is left out of it, and when it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.raw_engine import Exchange, RawEngine
from tests.fakes.stream_steps import ev
from tests.server.calls import ollama_error
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import HI, asked, chat, generate
from tests.server.ollama.engine_answers import body_of, failing, streamed, too_long
from tests.server.ollama.ndjson import success
from tests.server.ollama.served_models import OTHER, SLOT, TOOLER

OVERFLOW = ("the prompt is longer than the context length currently available to the model; "
            "shorten the prompt, adjust the context length in settings, or use a model with a "
            "longer context length")


def counted(exchange: Exchange) -> None:
    """An engine that takes so many tokens, each character being one, and no more."""
    messages = body_of(exchange)["messages"]
    tokens = sum(len(message["content"]) for message in messages)
    script: Any = [too_long(tokens, SLOT)] if tokens >= SLOT else streamed(ev("ok"))
    for step in script:
        step(exchange)


def talk(turns: int, size: int = 100) -> list[dict[str, Any]]:
    """A conversation behind a system message: questions and answers, numbered."""
    said = [{"role": ("user", "assistant")[i % 2], "content": f"{i:03d}".ljust(size, ".")}
            for i in range(turns)]
    return [{"role": "system", "content": "be brief"}, *said]


@pytest.mark.parametrize("truncate", [{}, {"truncate": True}, {"truncate": None}], ids=repr)
@pytest.mark.parametrize("turns", [21, 41, 401])
def test_the_oldest_messages_go_first(
        gateway: GatewayProcess, engine: RawEngine, turns: int, truncate: dict[str, Any]) -> None:
    """System messages and the last stay, and as much before it as there is room for."""
    messages = talk(turns)
    engine.answer_with(counted)
    assert success(chat(gateway.url, messages=messages, **truncate))
    tries = [body["messages"] for body in asked(engine)]
    assert tries[0] == messages and len(tries) <= 8
    system, *kept = tries[-1]
    assert system == messages[0] and kept == messages[-len(kept):]
    assert kept[0]["role"] == "user" and len(kept) >= 10


def test_a_result_is_not_kept_without_its_call(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Templates refuse an answer to what nobody asked."""
    call = {"id": "c", "function": {"name": "f", "arguments": {}}}
    round_ = [{"role": "user", "content": "q" * 300},
              {"role": "assistant", "content": "", "tool_calls": [call]},
              {"role": "tool", "content": "r" * 300, "tool_call_id": "c"}]
    engine.answer_with(counted)
    assert success(chat(gateway.url, model=TOOLER, messages=[*round_ * 8, *HI]))
    kept = asked(engine)[-1]["messages"]
    roles = [message["role"] for message in kept]
    assert roles[0] != "tool" and roles[-1] == "user" and len(roles) > 3
    assert all(roles[i - 1] == "assistant" for i, role in enumerate(roles) if role == "tool")


TOO_MUCH = [[{"role": "user", "content": "x" * 3000}], [*talk(3), {
    "role": "user", "content": "x" * 3000}], [{"role": "system", "content": "x" * 3000}, *HI]]


@pytest.mark.parametrize("messages", TOO_MUCH, ids=["alone", "last", "system"])
def test_what_cannot_be_left_out_is_too_long(
        gateway: GatewayProcess, engine: RawEngine, messages: list[dict[str, Any]]) -> None:
    """In Ollama's words, or in those inside of the engine's error; soon."""
    engine.answer_with(counted)
    answer = chat(gateway.url, messages=messages)
    assert answer.status == 400
    text = ollama_error(answer)
    assert text == OVERFLOW or text.startswith("request (")
    assert len(engine.requests) <= 8


def test_nothing_is_left_out_unasked(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The client knows best what it can do without."""
    engine.answer_with(counted)
    answer = chat(gateway.url, messages=talk(41), truncate=False)
    assert answer.status == 400 and len(engine.requests) == 1
    text = ollama_error(answer)
    assert text == OVERFLOW or text.startswith("request (")


@pytest.mark.parametrize("fields", [{}, {"truncate": False}, {"raw": True}], ids=repr)
def test_a_prompt_that_is_too_long(
        gateway: GatewayProcess, engine: RawEngine, fields: dict[str, Any]) -> None:
    """Has no older messages."""
    engine.answer_with(too_long(3031, SLOT))
    answer = generate(gateway.url, **fields)
    text = ollama_error(answer)
    assert answer.status == 400 and (text == OVERFLOW or text.startswith("request ("))
    assert len(engine.requests) == 1


def test_another_makes_words_for_it(gateway: GatewayProcess, other: RawEngine) -> None:
    """Are told as they are."""
    text = "This model's maximum context length is 2048 tokens."
    other.answer_with(failing(400, text, "BadRequestError"))
    answer = chat(gateway.url, model=OTHER, messages=talk(41))
    assert (answer.status, ollama_error(answer)) == (400, text)
