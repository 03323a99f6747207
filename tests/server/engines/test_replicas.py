"""Several engines for one model: conversations stay where they are, and are spread over all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.fakes.engine_steps import reply, reset, silence
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import openai_error, post
from tests.server.engines.calling import converse, succeeds, together
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, attached

Engines = tuple[RawEngine, RawEngine]
CONVERSATIONS = 24


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    """Two engines that serve the same model."""
    with RawEngine(reply()) as one, RawEngine(reply()) as two:
        for engine in one, two:
            engine.probe_script = reply(200, b'{"status":"ok"}')
        yield one, two


@pytest.fixture(scope="module")
def gateway(start: Start, engines: Engines) -> ManagedGateway:
    """A gateway that seldom probes them."""
    entries = [attached(engine.url, "m", strikes=100, read_timeout="500ms") for engine in engines]
    return start(entries, **{"probe-interval": "1h"})


@pytest.fixture(autouse=True)
def fresh(engines: Engines) -> None:
    """No test knows what the engines were asked before."""
    for engine in engines:
        engine.answer_with(reply())


def shares(engines: Engines) -> tuple[int, int]:
    """How many calls have reached each of the two."""
    return len(engines[0].requests), len(engines[1].requests)


def test_a_conversation_stays_with_its_engine(gateway: ManagedGateway, engines: Engines) -> None:
    """As it grows, so that the engine need not read it anew."""
    for length in range(1, 9):
        succeeds(converse(gateway.url, *[f"line {number}" for number in range(length)]))
    assert sorted(shares(engines)) == [0, 8]


def chat_of(texts: list[str]) -> dict[str, Any]:
    """A conversation so far, as messages."""
    return {"messages": [{"role": ("user", "assistant")[number % 2], "content": text}
                         for number, text in enumerate(texts)]}


def response_of(texts: list[str]) -> dict[str, Any]:
    """The same as the input of a response: a text at first, then a list of items."""
    said = chat_of(texts)["messages"]
    return {"instructions": "Be brief.", "input": texts[0] if len(said) == 1 else said}


def message_of(texts: list[str]) -> dict[str, Any]:
    """The same as Anthropic's clients have it."""
    return {"system": [{"type": "text", "text": "Be brief."}], "max_tokens": 9, **chat_of(texts)}


@pytest.mark.parametrize(("path", "made"), [
    ("/v1/responses", response_of), ("/responses", response_of), ("/v1/messages", message_of)])
def test_it_does_by_every_api(
        gateway: ManagedGateway, engines: Engines, path: str, made: Any) -> None:
    """A turn of it is wherever the first one was; different conversations are spread."""
    for topic in range(16):
        before = shares(engines)
        for turns in 1, 3, 5:
            texts = [f"topic {topic}", *[f"line {number}" for number in range(1, turns)]]
            succeeds(post(gateway.url, path, {"model": "m", **made(texts)}))
        moved = [now - then for now, then in zip(shares(engines), before)]
        assert sorted(moved) == [0, 3]
    assert min(shares(engines)) > 0


@pytest.mark.parametrize("session", ["x", "another", "y" * 200])
def test_a_session_stays_with_its_engine(
        gateway: ManagedGateway, engines: Engines, session: str) -> None:
    """Whatever its messages are."""
    for number in range(8):
        succeeds(converse(gateway.url, f"text {number}", x_juno_session_id=session))
    assert sorted(shares(engines)) == [0, 8]
    assert b"x_juno" not in b"".join(r.body for engine in engines for r in engine.requests)


@pytest.mark.parametrize("by_session", [False, True])
def test_conversations_are_spread(
        gateway: ManagedGateway, engines: Engines, by_session: bool) -> None:
    """Different ones are with different engines, many at once or one by one."""
    asks = [partial(converse, gateway.url, "hi", x_juno_session_id=f"s{n}") if by_session
            else partial(converse, gateway.url, f"topic {n}") for n in range(CONVERSATIONS)]
    for answer in together(*asks):
        succeeds(answer)
    assert sum(shares(engines)) == CONVERSATIONS and min(shares(engines)) >= 2


def test_two_gateways_agree(
        gateway: ManagedGateway, engines: Engines, start: Start) -> None:
    """Without talking to each other, whatever the order of their configuration."""
    other = start([attached(engine.url, "m") for engine in reversed(engines)])

    def placed(asked: ManagedGateway) -> list[set[str]]:
        for engine in engines:
            engine.answer_with(reply())
        for number in range(8):
            succeeds(converse(asked.url, f"topic {number}"))
        return [{json.loads(r.body)["messages"][1]["content"] for r in engine.requests}
                for engine in engines]
    assert placed(gateway) == placed(other)


def test_calls_without_a_conversation_go_where_there_is_less_to_do(
        gateway: ManagedGateway, engines: Engines) -> None:
    """While one works, the other gets the next."""
    for engine in engines:
        engine.answer_with(silence)
    embed = partial(post, gateway.url, "/v1/embeddings", {"model": "m", "input": "x"})
    for answer in together(embed, embed, embed, embed):
        assert answer.status == 504
    assert shares(engines) == (2, 2)


@pytest.mark.parametrize("fault", [reset, silence, reply(500, b"{}")], ids=[
    "reset", "silence", "error"])
def test_what_reached_an_engine_is_not_repeated(
        gateway: ManagedGateway, engines: Engines, fault: Any) -> None:
    """The other engine is not asked, though it would have answered."""
    for engine in engines:
        engine.answer_with(fault)
    answer = converse(gateway.url, "hi")
    assert answer.status in (502, 504) and openai_error(answer)
    assert sum(shares(engines)) == 1
