"""/api/embed and /api/embeddings: vectors, their length, and inputs that are too long or none."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.raw_client import RawAnswer
from tests.fakes.raw_engine import Exchange, RawEngine
from tests.server.calls import ollama_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import EMBED, EMBEDDINGS, asked, embed, sent
from tests.server.ollama.engine_answers import (
    BEGIN, LLAMA_ROUTES, V1_EMBEDDINGS, body_of, failing, routed, text_of, too_long, vectors,
)
from tests.server.ollama.served_models import EMBEDDER, OTHER, SLOT

BATCH = 512
TOO_LONG = "the input length exceeds the context length"


def embeddings(url: str, **fields: Any) -> RawAnswer:
    """The older question."""
    return post(url, EMBEDDINGS, {"model": EMBEDDER, "prompt": "hi", **fields})


def found(answer: RawAnswer) -> dict[str, Any]:
    """The object of a good answer."""
    assert answer.status == 200, answer.body
    assert answer.header("Content-Type") == "application/json; charset=utf-8"
    return dict(answer.json())


def unit(vector: list[float]) -> Any:
    """The vector at length 1, as far as floats can be equal."""
    length = math.sqrt(sum(number * number for number in vector))
    return pytest.approx([number / length for number in vector], rel=1e-6)


INPUTS: list[tuple[Any, list[str]]] = [
    ("hi", ["hi"]), (["hi"], ["hi"]), (["a", "bb", "ccc"], ["a", "bb", "ccc"]),
    (["", "a"], [" ", "a"]), (["a"] * 100, ["a"] * 100),
]


@pytest.mark.parametrize("model", [EMBEDDER, OTHER])
@pytest.mark.parametrize(("given", "texts"), INPUTS, ids=lambda value: repr(value)[:30])
def test_a_vector_of_length_one_for_each_input(
        gateway: GatewayProcess, engine: RawEngine, other: RawEngine, model: str, given: Any,
        texts: list[str]) -> None:
    """In their order; an empty one among them, which engines refuse, counts as a space."""
    body = found(embed(gateway.url, model=model, input=given))
    assert list(body) == ["model", "embeddings", "total_duration", "load_duration",
                          "prompt_eval_count"]
    assert body["embeddings"] == [unit([1.0, float(len(text)), 2.0]) for text in texts]
    assert (body["model"], body["prompt_eval_count"]) == (model, 7)
    assert all(type(body[name]) is int and body[name] >= 1 for name in list(body)[2:])
    assert sent(engine if model == EMBEDDER else other, V1_EMBEDDINGS)["input"] == texts


@pytest.mark.parametrize("given", [{}, {"input": None}, {"input": ""}, {"input": []}], ids=repr)
def test_no_input_is_no_vector(
        gateway: GatewayProcess, engine: RawEngine, given: dict[str, Any]) -> None:
    """The model is loaded, and that is all that is said."""
    body = found(post(gateway.url, EMBED, {"model": EMBEDDER, **given}))
    assert body == {"model": EMBEDDER, "embeddings": []}
    assert asked(engine, V1_EMBEDDINGS) == []


@pytest.mark.parametrize("value", [5, True, {}, {"a": "b"}, [5], ["a", None], [["a"]], [1, 2]],
                         ids=repr)
def test_an_input_of_a_wrong_type(gateway: GatewayProcess, engine: RawEngine, value: Any) -> None:
    """No text, no vector."""
    answer = embed(gateway.url, input=value)
    assert (answer.status, ollama_error(answer)) == (400, "invalid input type")
    assert engine.requests == []


@pytest.mark.parametrize(("size", "cut"), [
    (None, [3, 4, 12]), (0, [3, 4, 12]), (2, [3, 4]), (1, [3]), (3, [3, 4, 12]), (9, [3, 4, 12])])
def test_dimensions_cut_and_stretch(
        gateway: GatewayProcess, engine: RawEngine, size: int | None, cut: list[float]) -> None:
    """What is left has length 1 again; a number that is larger or zero changes nothing."""
    engine.answer_with(vectors([3, 4, 12]))
    assert found(embed(gateway.url, dimensions=size))["embeddings"] == [unit(cut)]


def test_vectors_that_have_no_direction(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Zeros stay zeros, tiny and huge numbers get a length of 1."""
    engine.answer_with(vectors([0, 0], [3e-30, 4e-30], [3e30, 4e30]))
    zeros, *others = found(embed(gateway.url, input=["a", "b", "c"]))["embeddings"]
    assert zeros == [0, 0] and others == [unit([3, 4])] * 2


def test_vectors_in_another_order(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Their index counts, not their place."""
    data = [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [2, 0]}]
    engine.answer_with(reply(200, json.dumps({"data": data}).encode()))
    body = found(embed(gateway.url, input=["a", "b"]))
    assert body["embeddings"] == [[1, 0], [0, 1]] and body["prompt_eval_count"] >= 1


NO_NUMBERS: dict[str, bytes] = {
    "null": b'{"data":[{"index":0,"embedding":[null,1]}]}',
    "nan": b'{"data":[{"index":0,"embedding":[NaN,1]}]}',
    "infinite": b'{"data":[{"index":0,"embedding":[1e999,1]}]}',
}


@pytest.mark.parametrize("body", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_vectors_of_no_numbers(gateway: GatewayProcess, engine: RawEngine, body: bytes) -> None:
    """A model that breaks down on an input says so in Ollama's words, never in broken JSON."""
    engine.answer_with(reply(200, body))
    answer = embed(gateway.url)
    assert (answer.status, ollama_error(answer)) == (400, "embedding contains NaN or Inf values")
    assert ollama_error(embeddings(gateway.url))


RUBBISH = [b"{}", b'{"data":[]}', b'{"data":[{"index":0}]}', b'{"data":5}', b"[]", b"hello",
           b'{"data":[{"index":0,"embedding":"AAAA"}]}', b'{"data":[{"index":0,"embedding":[1]},'
                                                         b'{"index":1,"embedding":[1]}]}']


@pytest.mark.parametrize("body", RUBBISH)
def test_an_answer_without_vectors_is_a_502(
        gateway: GatewayProcess, engine: RawEngine, body: bytes) -> None:
    """Nothing is made up."""
    engine.answer_with(reply(200, body))
    answer = embed(gateway.url)
    assert (answer.status, bool(ollama_error(answer))) == (502, True)


def size_of(given: Any) -> int:
    """How many tokens the fake engine counts: it puts two around a text, none around tokens."""
    return len(given) + (2 if isinstance(given, str) else 0)


def limited(exchange: Exchange) -> None:
    """An engine that takes so many tokens at once and no more."""
    inputs = body_of(exchange)["input"]
    longest = max(map(size_of, inputs))
    if longest > BATCH:
        failing(500, f"input ({longest} tokens) is too large to process. increase the physical "
                     f"batch size (current batch size: {BATCH})")(exchange)
    else:
        vectors(*([1.0, float(size_of(each))] for each in inputs))(exchange)


def words_in(given: Any) -> str:
    """The text in an input for the engine, be it a text or its tokens."""
    return given if isinstance(given, str) else text_of(given)


LONG = "abcdefghij" * 300


@pytest.mark.parametrize("truncate", [{}, {"truncate": True}, {"truncate": None}], ids=repr)
def test_a_long_input_is_cut(
        gateway: GatewayProcess, engine: RawEngine, truncate: dict[str, Any]) -> None:
    """To what the engine takes at once, its own special tokens included; not to much less."""
    engine.answer_with(routed({**LLAMA_ROUTES, V1_EMBEDDINGS: limited}))
    body = found(embed(gateway.url, input=["short", LONG], **truncate))
    assert len(body["embeddings"]) == 2
    first, second = asked(engine, V1_EMBEDDINGS)
    assert first["input"] == ["short", LONG]
    kept = words_in(second["input"][1])
    assert LONG.startswith(kept) and BATCH - 8 <= len(kept) <= BATCH - 2


def test_what_is_not_too_long_stays_as_it_is(gateway: GatewayProcess, engine: RawEngine) -> None:
    """A neighbour that is cut does not change another input's vector."""
    engine.answer_with(routed({**LLAMA_ROUTES, V1_EMBEDDINGS: limited}))
    alone = found(embed(gateway.url, input=["short"]))["embeddings"][0]
    assert found(embed(gateway.url, input=["short", LONG]))["embeddings"][0] == alone


def test_a_cut_input_is_still_a_whole_one(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Tokens stand for a text only with those that the engine would have put around it."""
    engine.answer_with(routed({**LLAMA_ROUTES, V1_EMBEDDINGS: limited}))
    assert found(embed(gateway.url, input=LONG))
    given = asked(engine, V1_EMBEDDINGS)[-1]["input"][0]
    assert isinstance(given, str) or given[0] == BEGIN, given[:3]


def test_an_input_that_is_longer_than_the_context(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """An engine with a larger batch says it in another way."""
    def step(exchange: Exchange) -> None:
        longest = max(map(size_of, body_of(exchange)["input"]))
        (too_long(longest, SLOT) if longest > SLOT else vectors([1.0]))(exchange)
    engine.answer_with(routed({**LLAMA_ROUTES, V1_EMBEDDINGS: step}))
    assert found(embed(gateway.url, input=LONG))["embeddings"] == [[1]]
    kept = words_in(asked(engine, V1_EMBEDDINGS)[-1]["input"][0])
    assert LONG.startswith(kept) and SLOT - 8 <= len(kept) <= SLOT - 2


ENGINES_WORDS = [
    failing(500, f"input (3001 tokens) is too large to process. increase the physical batch size "
                 f"(current batch size: {BATCH})"),
    too_long(3001, SLOT), failing(400, "maximum context length is 512 tokens"),
]


@pytest.mark.parametrize("refusal", ENGINES_WORDS)
def test_a_long_input_may_not_be_cut(
        gateway: GatewayProcess, engine: RawEngine, refusal: Any) -> None:
    """Then it is refused in Ollama's words, and the engine is asked once."""
    engine.answer_with(refusal)
    answer = embed(gateway.url, input=LONG, truncate=False)
    assert (answer.status, ollama_error(answer)) == (400, TOO_LONG)
    assert len(engine.requests) == 1


def test_an_input_that_does_not_get_short_enough(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """An engine that refuses whatever it gets is not asked for ever."""
    engine.answer_with(routed({**LLAMA_ROUTES, V1_EMBEDDINGS: ENGINES_WORDS[0]}))
    answer = embed(gateway.url, input=LONG)
    assert (answer.status, ollama_error(answer)) == (400, TOO_LONG)
    assert len(asked(engine, V1_EMBEDDINGS)) <= 4


def test_another_make_cannot_count_tokens(gateway: GatewayProcess, other: RawEngine) -> None:
    """Its refusal is told."""
    other.answer_with(failing(400, "maximum context length is 512 tokens"))
    answer = embed(gateway.url, model=OTHER, input=LONG)
    assert (answer.status, ollama_error(answer)) == (400, TOO_LONG)


@pytest.mark.parametrize("ask", [embed, embeddings], ids=["embed", "embeddings"])
def test_an_engine_that_does_not_embed(
        gateway: GatewayProcess, engine: RawEngine, ask: Any) -> None:
    """Has been started without that: the model does not support it."""
    engine.answer_with(failing(501, "This server does not support embeddings. Start it with "
                                    "`--embeddings`", "not_supported_error"))
    answer = ask(gateway.url)
    assert answer.status == 400 and f'"{EMBEDDER}" does not support' in ollama_error(answer)


def test_the_older_question_has_the_engines_vector(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """As it is, flat, and nothing beside it."""
    engine.answer_with(vectors([3, 4.5]))
    assert found(embeddings(gateway.url, keep_alive="5m", options={"num_ctx": 9})) == {
        "embedding": [3, 4.5]}
    assert sent(engine, V1_EMBEDDINGS)["input"] == ["hi"]


@pytest.mark.parametrize("prompt", [{}, {"prompt": ""}, {"prompt": None}], ids=repr)
def test_the_older_question_without_a_prompt(
        gateway: GatewayProcess, engine: RawEngine, prompt: dict[str, Any]) -> None:
    """Loads."""
    assert found(post(gateway.url, EMBEDDINGS, {"model": EMBEDDER, **prompt})) == {"embedding": []}
    assert engine.requests == []


@pytest.mark.parametrize("route", [EMBED, EMBEDDINGS])
@pytest.mark.parametrize("model", [{}, {"model": ""}, {"model": None}, {"name": EMBEDDER}],
                         ids=repr)
def test_a_model_is_required(
        gateway: GatewayProcess, route: str, model: dict[str, Any]) -> None:
    """Other than in a prompt's answer; the older word for it is not known here."""
    answer = post(gateway.url, route, {"input": "a", "prompt": "a", **model})
    assert (answer.status, ollama_error(answer)) == (400, "model is required")
