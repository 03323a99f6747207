"""Tool calls of a history: ids, arguments, and which result answers which call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.api.ollama.request.messages import translate
from tests.unit.ollama.request_cases import LLAMA, refusal

Message = dict[str, Any]


def call(name: str, call_id: str | None = None, arguments: Any = None) -> Message:
    """A tool call in Ollama's shape."""
    made: Message = {"function": {"name": name}}
    if arguments is not None:
        made["function"]["arguments"] = arguments
    return {"id": call_id, **made} if call_id else made


def asking(*calls: Message) -> Message:
    """An assistant's message that calls tools."""
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}


def result(**fields: str) -> Message:
    """A tool's message."""
    return {"role": "tool", "content": "r", **fields}


ONE, TWO, THREE = (f"call_0000000{i}" for i in (1, 2, 3))
# What the tool's messages say after the calls → (tool_call_id, name) of each
MATCHES: list[tuple[str, list[Message], list[tuple[str | None, str | None]]]] = [
    ("without anything, by order",
     [asking(call("f"), call("g")), result(), result()], [(ONE, "f"), (TWO, "g")]),
    ("by name, in any order",
     [asking(call("f"), call("g")), result(tool_name="g"), result(tool_name="f")],
     [(TWO, "g"), (ONE, "f")]),
    ("by the older key",
     [asking(call("f"), call("g")), result(name="g"), result(name="f")],
     [(TWO, "g"), (ONE, "f")]),
    ("the newer key counts",
     [asking(call("f"), call("g")), result(name="f", tool_name="g")], [(TWO, "g")]),
    ("two calls of one tool, by order",
     [asking(call("f"), call("f")), result(tool_name="f"), result(tool_name="f")],
     [(ONE, "f"), (TWO, "f")]),
    ("a name that was not called, by order",
     [asking(call("f"), call("g")), result(tool_name="x"), result(tool_name="y")],
     [(ONE, "x"), (TWO, "y")]),
    ("by id, in any order",
     [asking(call("f", "a"), call("g", "b")), result(tool_call_id="b"), result(tool_call_id="a")],
     [("b", "g"), ("a", "f")]),
    ("an id counts before a name",
     [asking(call("f", "a"), call("g", "b")), result(tool_call_id="b", tool_name="f"), result()],
     [("b", "f"), ("a", "f")]),
    ("an unknown id stays and answers nothing",
     [asking(call("f", "a")), result(tool_call_id="z"), result()], [("z", None), ("a", "f")]),
    ("an empty id is none",
     [asking(call("f")), result(tool_call_id="", tool_name="")], [(ONE, "f")]),
    ("ids on some calls only",
     [asking(call("f", "a"), call("g")), result(tool_name="g"), result()],
     [(ONE, "g"), ("a", "f")]),
    ("one id on two calls",
     [asking(call("f", "a"), call("f", "a")), result(), result()], [("a", "f"), ("a", "f")]),
    ("made ids pass over given ones",
     [asking(call("f"), call("g", ONE), call("h")), result(), result(), result()],
     [(TWO, "f"), (ONE, "g"), (THREE, "h")]),
    ("more results than calls",
     [asking(call("f")), result(), result(), result(tool_name="f")],
     [(ONE, "f"), (None, None), (None, "f")]),
    ("a result without any call", [result(tool_name="f")], [(None, "f")]),
    ("the calls of the last message that made some count",
     [asking(call("f")), asking(call("f")), result(), result()], [(TWO, "f"), (None, None)]),
    ("an answer between calls and results closes nothing",
     [asking(call("f")), {"role": "assistant", "content": "wait"}, result()], [(ONE, "f")]),
    ("several rounds",
     [asking(call("f")), result(), asking(call("f"), call("g")), result(), result()],
     [(ONE, "f"), (TWO, "f"), (THREE, "g")]),
]


@pytest.mark.parametrize(("messages", "matches"), [case[1:] for case in MATCHES],
                         ids=[case[0] for case in MATCHES])
def test_a_result_finds_its_call(
        messages: list[Message], matches: list[tuple[str | None, str | None]]) -> None:
    """By its id, else by the tool's name, else by its place."""
    sent = translate(messages, LLAMA)
    found = [(m.get("tool_call_id"), m.get("name")) for m in sent if m["role"] == "tool"]
    assert found == matches


def test_a_longer_conversation_keeps_its_ids() -> None:
    """What the engine has cached of the beginning stays valid."""
    begun = [asking(call("f"), call("g")), result(), result()]
    whole = [*begun, {"role": "user", "content": "on"}, asking(call("h"))]
    assert translate(whole, LLAMA)[:3] == translate(begun, LLAMA)


def test_a_call_has_the_shape_that_engines_want() -> None:
    """Id, type and function, without Ollama's index, keys in any case."""
    given = {"ID": "a", "extra": 1, "Function": {"Index": 0, "Name": "f", "Arguments": {}}}
    [sent] = translate([asking(given)], LLAMA)
    assert sent == {"role": "assistant", "content": "", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}


@pytest.mark.parametrize(("arguments", "text"), [
    (None, "{}"),
    ({}, "{}"),
    ("", "{}"),
    ({"b": 1, "a": [1.5, None, True]}, '{"b":1,"a":[1.5,null,true]}'),
    ({"t": "grüße 北 \"x\" <b>"}, '{"t":"grüße 北 \\"x\\" <b>"}'),
    ({"n": 18446744073709551615}, '{"n":18446744073709551615}'),
    ('{"b": 1, "a": 2}', '{"b": 1, "a": 2}'),
    (" {} ", " {} "),
])
def test_arguments_become_text(arguments: Any, text: str) -> None:
    """Their order stays; a text that holds an object is taken as it is."""
    [sent] = translate([asking(call("f", arguments=arguments))], LLAMA)
    assert sent["tool_calls"][0]["function"]["arguments"] == text
    assert isinstance(json.loads(text), dict)


PATH = "messages[0].tool_calls[0]"
WRONG: list[tuple[Any, str]] = [
    (5, f"{PATH} must be an object"),
    ({}, f"{PATH}.function.name must not be blank"),
    ({"function": "f"}, f"{PATH}.function must be an object"),
    ({"function": {"name": ""}}, f"{PATH}.function.name must not be blank"),
    ({"function": {"name": 5}}, f"{PATH}.function.name must be a text"),
    ({"id": 5, "function": {"name": "f"}}, f"{PATH}.id must be a text"),
    (call("f", arguments="x"), f"{PATH}.function.arguments must be an object"),
    (call("f", arguments="[]"), f"{PATH}.function.arguments must be an object"),
    (call("f", arguments='{"a":NaN}'), f"{PATH}.function.arguments must be an object"),
    (call("f", arguments=[]), f"{PATH}.function.arguments must be an object"),
    (call("f", arguments=False), f"{PATH}.function.arguments must be an object"),
]


@pytest.mark.parametrize(("wrong", "text"), WRONG, ids=repr)
def test_a_wrong_call_is_refused(wrong: Any, text: str) -> None:
    """The refusal says which field of which call it is."""
    message = {"role": "assistant", "tool_calls": [wrong]}
    assert refusal(translate, [message], LLAMA) == text


@pytest.mark.parametrize("key", ["tool_call_id", "tool_name", "name"])
def test_a_wrong_result_is_refused(key: str) -> None:
    """What says which call it answers is a text."""
    message = {"role": "tool", key: 5}
    assert refusal(translate, [message], LLAMA) == f"messages[0].{key} must be a text"
