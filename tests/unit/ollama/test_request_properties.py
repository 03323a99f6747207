"""Whatever JSON a request is made of: an ask that can be sent, or a refusal."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app import jsontext
from app.api.ollama.refusal import Refusal
from app.api.ollama.request import chat, generate, keep_alive
from app.engine_facts import EngineFacts
from tests.unit.ollama.request_cases import LLAMA, NO_CONTEXT, OTHER, PNG, WAV

MANY = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
NUMBERS = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([-2, -1, 0, 2**31, 2**63, 10**400, -(10**400), -0.0, 1e308]))
# No surrogates: a request is mended when it is read.
TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(
    ["json", "high", "max", "5m", "-1", "{}", PNG, WAV, "[img-0]", "{{ .Prompt }}", "{{ end }}"]))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
ANY = st.recursive(SCALARS, lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)), max_leaves=6)


def sometimes(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what belongs there, now and then anything."""
    return st.integers(0, 39).flatmap(lambda number: ANY if number == 23 else right)


def some(**keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with some of these keys."""
    return sometimes(st.fixed_dictionaries(
        {}, optional={key: sometimes(value) for key, value in keys.items()}))


IMAGES = st.lists(sometimes(st.sampled_from([PNG, WAV])), max_size=2)
FUNCTION = some(name=TEXTS, arguments=st.dictionaries(TEXTS, ANY, max_size=2),
                parameters=st.dictionaries(TEXTS, ANY, max_size=2))
CALL = some(id=TEXTS, function=FUNCTION)
ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
MESSAGE = some(role=ROLES, content=TEXTS, thinking=TEXTS, images=IMAGES, tool_name=TEXTS,
               tool_call_id=TEXTS, tool_calls=st.lists(CALL, max_size=2))
NAMES = ["num_predict", "temperature", "top_k", "top_p", "min_p", "typical_p", "seed", "num_keep",
         "repeat_last_n", "repeat_penalty", "presence_penalty", "frequency_penalty", "mirostat",
         "mirostat_tau", "mirostat_eta", "keep_alive", "format", "num_ctx"]
OPTIONS = some(stop=st.lists(TEXTS, max_size=2), **dict.fromkeys(NAMES, NUMBERS))
SCHEMA = st.dictionaries(st.sampled_from([
    "type", "properties", "$defs", "items", "anyOf", "oneOf", "enum", "const", "pattern", "format",
    "minItems", "maxItems", "minLength", "maxLength", "minimum", "exclusiveMaximum", "x"]),
    ANY, max_size=4)
SHARED = {
    "options": OPTIONS,
    "format": st.one_of(st.sampled_from(["json", "", {"type": "object"}]), SCHEMA),
    "think": st.sampled_from([True, False, "low", "max"]), "logprobs": st.booleans(),
    "top_logprobs": st.integers(-1, 21), "keep_alive": SCALARS, "model": TEXTS,
}
CHAT = st.fixed_dictionaries({}, optional={
    key: sometimes(value) for key, value in {
        **SHARED, "messages": st.lists(MESSAGE, max_size=4),
        "tools": st.lists(some(type=TEXTS, function=FUNCTION), max_size=2)}.items()})
GENERATE = st.fixed_dictionaries({}, optional={
    key: sometimes(value) for key, value in {
        **SHARED, **dict.fromkeys(["prompt", "system", "suffix", "template"], TEXTS),
        "raw": st.booleans(), "images": IMAGES,
        "context": st.lists(st.integers(0, 9), max_size=2)}.items()})
ENGINES = st.sampled_from([LLAMA, NO_CONTEXT, OTHER])


@MANY
@given(CHAT, ENGINES, st.booleans())
def test_any_chat(fields: dict[str, Any], facts: EngineFacts, thinking: bool) -> None:
    """What is not refused is JSON that the engine can read, and can be shortened to an end."""
    try:
        ask = chat.ask(fields, facts, thinking)
    except Refusal as refusal:
        assert refusal.status == 400 and refusal.text
        return
    assert ask.body["stream"] is True and "model" not in ask.body
    jsontext.decode(jsontext.encode(ask.body))
    short = chat.shortened(ask, 1000, 500)
    assert short is None or len(short.body["messages"]) < len(ask.body["messages"])


@MANY
@given(GENERATE, ENGINES, st.booleans())
def test_any_prompt(fields: dict[str, Any], facts: EngineFacts, thinking: bool) -> None:
    """What is not refused is JSON that the engine can read, its lookups too."""
    try:
        ask = generate.ask(fields, facts, thinking)
    except Refusal as refusal:
        assert refusal.status == 400 and refusal.text
        return
    for lookup in ask.trials + ask.lookups:
        jsontext.encode(lookup.body)
    whole = ask.completed(["text"] * len(ask.lookups)) if ask.lookups else ask
    assert whole.body["stream"] is True and "model" not in whole.body
    jsontext.decode(jsontext.encode(whole.body))


@MANY
@given(ANY, ANY)
def test_any_keep_alive(value: Any, options: Any) -> None:
    """It is a number of seconds, nothing, or refused."""
    try:
        seconds = keep_alive.of({"keep_alive": value, "options": options})
        assert seconds is None or seconds >= 0
    except Refusal as refusal:
        assert refusal.status == 400 and refusal.text
