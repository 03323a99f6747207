"""llama-server takes every body that Ollama's requests are translated to."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from app import jsontext
from app.api.ollama.request import chat, generate
from app.api.ollama.request.ask import Ask
from app.engine_facts import EngineFacts
from tests.engine.conftest import ALIAS
from tests.engine.engine_process import EngineProcess
from tests.fakes.raw_client import RawAnswer
from tests.server.calls import post

pytestmark = pytest.mark.engine
FACTS = EngineFacts(kind="llama-server", slot_context=4096)
FEW = {"num_predict": 3}
HI = [{"role": "user", "content": "hi"}]
TOOL = {"function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
LOOP = [
    *HI,
    {"role": "Assistant", "thinking": "hm", "tool_calls": [
        {"function": {"name": "f", "arguments": {"a": "1"}}}, {"function": {"name": "g"}}]},
    {"role": "tool", "content": "1"},
    {"role": "tool", "content": "2", "tool_name": "f"},
    {"role": "user"},
]
ODD = {
    "num_predict": 0, "temperature": -1, "top_k": -4, "top_p": 7, "min_p": -1, "typical_p": -1,
    "repeat_last_n": -1, "repeat_penalty": 0, "presence_penalty": -1e300, "seed": 10**30,
    "frequency_penalty": 10**400, "stop": ["", ""], "num_keep": -9, "mirostat": 9,
    "mirostat_tau": -1, "mirostat_eta": 5, "num_ctx": 9, "penalize_newline": True,
}
LARGE = {"num_predict": 1, **dict.fromkeys(
    ["temperature", "top_k", "repeat_last_n", "repeat_penalty", "num_keep"], 10**12)}

CHATS: list[dict[str, Any]] = [
    {"options": ODD}, {"options": LARGE}, {"options": {"num_predict": 2, "seed": -(10**30)}},
    {"format": "json"}, {"format": SCHEMA}, {"think": False}, {"logprobs": True},
    {"logprobs": True, "top_logprobs": 20}, {"tools": [TOOL]},
    {"tools": [TOOL], "logprobs": True, "format": SCHEMA}, {"messages": LOOP},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]},
    {"messages": [{"role": "developer", "content": "x"}, {"role": "user", "content": "y"}]},
]
PROMPTS: list[dict[str, Any]] = [
    {"system": "be brief"}, {"raw": True}, {"raw": True, "format": "json"},
    {"raw": True, "format": SCHEMA}, {"raw": True, "logprobs": True, "top_logprobs": 3},
    {"raw": True, "options": ODD}, {"context": [1, 9690, 198], "system": "s"},
    {"template": "{{ if .System }}[{{ .System }}]{{ end }}{{ .Prompt }}", "system": "s"},
    {"template": "<{{ .Prompt }}>", "context": [1, 9690, 198]},
]


def answer(engine: EngineProcess, ask: Ask) -> RawAnswer:
    """What the engine says to the ask, its trials and lookups made first."""
    for trial in ask.trials:
        found = post(engine.url, trial.target, {**trial.body, "model": ALIAS})
        if found.status != 200:
            return found
    texts = []
    for lookup in ask.lookups:
        found = post(engine.url, lookup.target, {**lookup.body, "model": ALIAS})
        assert found.status == 200, found.body
        texts.append(found.json()[lookup.key])
    whole = ask.completed(texts) if texts else ask
    return post(engine.url, whole.target, {**whole.body, "model": ALIAS})


@pytest.mark.parametrize("fields", CHATS, ids=lambda value: repr(value)[:50])
def test_a_chat_is_taken(shared_engine: EngineProcess, fields: dict[str, Any]) -> None:
    """It is answered with a stream to its end."""
    ask = chat.ask({"messages": HI, "options": FEW, **fields}, FACTS, False)
    got = answer(shared_engine, ask)
    assert got.status == 200, got.body
    assert got.body.endswith(b"data: [DONE]\n\n") and b'"error"' not in got.body


@pytest.mark.parametrize("think", [None, True, "low", "max"])
def test_thinking_is_taken(shared_engine: EngineProcess, think: Any) -> None:
    """Also by a template that knows nothing of it."""
    ask = chat.ask({"messages": HI, "options": FEW, "think": think}, FACTS, True)
    assert answer(shared_engine, ask).status == 200


@pytest.mark.parametrize("fields", PROMPTS, ids=lambda value: repr(value)[:50])
def test_a_prompt_is_taken(shared_engine: EngineProcess, fields: dict[str, Any]) -> None:
    """It is answered with a stream to its end."""
    ask = generate.ask({"prompt": "Once", "options": FEW, **fields}, FACTS, False)
    got = answer(shared_engine, ask)
    assert got.status == 200, got.body
    assert b'"error"' not in got.body
    assert b'"stop":true' in got.body or b"data: [DONE]" in got.body


def test_a_raw_answer_keeps_its_format(shared_engine: EngineProcess) -> None:
    """"json" means an object for a raw prompt too."""
    fields = {"prompt": "A JSON object with a name and age:", "raw": True, "format": "json",
              "options": {"num_predict": 50, "temperature": 0}}
    got = answer(shared_engine, generate.ask(fields, FACTS, False))
    events = [jsontext.decode(line.removeprefix(b"data: "))
              for line in got.body.splitlines() if line]
    said = "".join(event["content"] for event in events)
    assert isinstance(jsontext.decode(said.encode()), dict)


@pytest.mark.parametrize("fields", [{}, {"raw": True}, {"context": [1]}], ids=repr)
@pytest.mark.parametrize("schema", [
    {"type": "nonsense"}, {"$ref": "#/nowhere"}, {"enum": []}, {"properties": {"a": 5}},
    {"type": "string", "minLength": -1}], ids=repr)
def test_a_bad_schema_is_refused(
        shared_engine: EngineProcess, fields: dict[str, Any], schema: dict[str, Any]) -> None:
    """In the same words whether the prompt is a chat or raw."""
    got = answer(shared_engine, generate.ask(
        {"prompt": "p", "format": schema, "options": FEW, **fields}, FACTS, False))
    assert got.status == 400 and "JSON schema error" in got.json()["error"]["message"]


@pytest.mark.parametrize(("schema", "start"), [
    ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "["),
    ({"type": "object", "properties": {"a": {"type": "string", "format": "int32"}},
      "required": ["a"], "not": {"required": ["b"]}}, "{"),
    ({"oneOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]}, ("{", "[")),
    ({"type": "string", "pattern": "^(?=a)b$", "maxLength": 10**9}, '"'),
    ({"type": "array", "items": {"type": "integer"}, "maxItems": 10**9}, "["),
    ({"type": "integer", "multipleOf": 123456789, "minimum": 0}, tuple("0123456789")),
], ids=repr)
def test_a_raw_answer_keeps_its_schema(
        shared_engine: EngineProcess, schema: dict[str, Any], start: str | tuple[str, ...]) -> None:
    """Whatever else it says that no engine can hold an answer to."""
    fields = {"prompt": "Once upon a time", "raw": True, "format": schema,
              "options": {"num_predict": 2, "temperature": 0}}
    got = answer(shared_engine, generate.ask(fields, FACTS, False))
    first = jsontext.decode(got.body.splitlines()[0].removeprefix(b"data: "))
    assert first["content"].lstrip().startswith(start)


def test_context_is_what_the_answer_goes_on_from(shared_engine: EngineProcess) -> None:
    """The engine evaluates the token ids and the templated question after them."""
    asked = "My name is Zoltan."
    tokens = post(shared_engine.url, "/tokenize", {"content": asked}).json()["tokens"]
    fields = {"prompt": "hi", "context": tokens, "options": FEW}
    got = answer(shared_engine, generate.ask(fields, FACTS, False))
    alone = post(shared_engine.url, "/apply-template", {"messages": HI}).json()["prompt"]
    count = len(post(shared_engine.url, "/tokenize", {"content": alone}).json()["tokens"])
    assert f'"tokens_evaluated":{count + len(tokens)},'.encode() in got.body


@pytest.mark.parametrize(("fields", "status", "words"), [
    ({"suffix": "s"}, 501, "Infill is not supported by this model"),
    ({"images": ["iVBORw0KGgo="]}, 500, "image input is not supported"),
    ({"images": ["iVBORw0KGgo="], "raw": True}, 400, "does not support multimodal requests"),
    ({"images": ["iVBORw0KGgo="], "context": [1]}, 400, "does not support multimodal requests"),
    ({"images": [base64.b64encode(b"fLaC").decode()]}, 500, "audio input is not supported"),
], ids=repr)
def test_what_the_model_cannot_do(
        shared_engine: EngineProcess, fields: dict[str, Any], status: int, words: str) -> None:
    """The engine understands what is asked for, and says that this model cannot."""
    got = answer(shared_engine, generate.ask({"prompt": "p", **fields}, FACTS, False))
    assert got.status == status
    assert words in got.json()["error"]["message"]


def test_a_long_chat_is_shortened_until_it_fits(demo_model: Path) -> None:
    """Two steps are enough, and most of what fits is kept."""
    story = "the quick brown fox jumps over the lazy dog " * 2
    turns = [{"role": role, "content": f"{i}: {story}"} for i in range(30)
             for role in ("user", "assistant")]
    messages = [{"role": "system", "content": "be brief"}, *turns, {"role": "user", "content": "?"}]
    ask: Ask | None = chat.ask({"messages": messages, "options": {"num_predict": 1}}, FACTS, False)
    arguments = ["--model", str(demo_model), "--alias", ALIAS, "--port", "0"]
    with EngineProcess(*arguments, "--ctx", "512", "--parallel", "1") as engine:
        engine.wait_until_up()
        for _ in range(2):
            assert ask
            error = answer(engine, ask).json()["error"]
            ask = chat.shortened(ask, error["n_prompt_tokens"], error["n_ctx"])
            if ask and (got := answer(engine, ask)).status == 200:
                break
    assert ask and got.status == 200, got.body
    assert ask.body["messages"][0] == messages[0] and ask.body["messages"][-1] == messages[-1]
    assert 10 < len(ask.body["messages"]) < 25
