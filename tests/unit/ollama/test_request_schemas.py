"""What of a JSON schema goes to a llama-server, and what is refused before it takes its memory."""

from __future__ import annotations

from typing import Any

import pytest

from app.api.ollama.request import chat, generate
from app.api.ollama.request.ask import Lookup
from app.api.ollama.request.schemas import bearable, common
from tests.unit.ollama.request_cases import LLAMA, OTHER, refusal

WHOLE = {"type": "integer"}
FULL = {
    "type": "object", "additionalProperties": False, "required": ["a"],
    "$defs": {"n": {"type": ["string", "null"], "minLength": 1999}},
    "properties": {
        "a": {"type": "array", "items": WHOLE, "minItems": 2000, "maxItems": 2000},
        "b": {"$ref": "#/$defs/n"}, "c": {"type": "string", "maxLength": 1999},
        "d": {"type": "string", "pattern": "^[a-z]{1,1999}x{3}y{2,}$"},
        "e": {"anyOf": [WHOLE, {"enum": [1, None]}, {"const": {"a": []}}]},
        "f": {"type": "integer", "minimum": -5, "maximum": 5},
    },
}


def array(**limits: Any) -> dict[str, Any]:
    """The schema of an array of whole numbers."""
    return {"type": "array", "items": WHOLE, **limits}


def text(**limits: Any) -> dict[str, Any]:
    """The schema of a text."""
    return {"type": "string", **limits}


def inside(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Schemas that hold this one, each in another place."""
    return [
        schema, {"properties": {"a": schema}}, {"items": schema}, {"items": [WHOLE, schema]},
        {"anyOf": [WHOLE, schema]}, {"$defs": {"x": {"allOf": [{"oneOf": [schema]}]}}},
        {"additionalProperties": schema}, {"prefixItems": [schema]}, {"definitions": {"x": schema}},
        {"properties": {"enum": schema}}, {"properties": {"default": {"not": schema}}},
    ]


def test_what_can_be_borne_is_unchanged() -> None:
    """Every key, in its order, up to the limits."""
    assert repr(bearable(FULL, "format")) == repr(FULL)
    assert bearable({}, "format") == {}


MANY = "{} asks for more than {}, the most that an engine can count"
HUGE: list[tuple[dict[str, Any], str]] = [
    (array(minItems=2001), MANY.format("minItems", 2000)),
    (array(minItems=10**400), MANY.format("minItems", 2000)),
    (array(minItems=1e9), MANY.format("minItems", 2000)),
    (text(minLength=2000), MANY.format("minLength", 1999)),
    (text(minLength=5000, maxLength=6000), MANY.format("minLength", 1999)),
    (text(pattern="^a{2000}$"), MANY.format("pattern", 1999)),
    (text(pattern="^(b{3}|[a-z]{1000000,})$"), MANY.format("pattern", 1999)),
    (text(pattern="^a{%s,5}$" % ("9" * 5000)), MANY.format("pattern", 1999)),
    (array(minItems=3, maxItems=2), "minItems is above maxItems"),
    (text(minLength=2, maxLength=1), "minLength is above maxLength"),
]


@pytest.mark.parametrize(("schema", "reason"), HUGE, ids=lambda value: repr(value)[:60])
def test_a_lower_limit_that_is_too_high(schema: dict[str, Any], reason: str) -> None:
    """The refusal names the keyword and the limit, wherever in the schema it is."""
    for whole in inside(schema):
        assert refusal(bearable, whole, "format") == f"format: {reason}"


@pytest.mark.parametrize(("schema", "kept"), [
    (array(minItems=1, maxItems=2001), array(minItems=1)),
    (array(maxItems=10**9), array()), (text(maxLength=1e300), text()),
    (text(minLength=5, maxLength=2000), text(minLength=5)),
])
def test_an_upper_limit_that_is_too_high(schema: dict[str, Any], kept: dict[str, Any]) -> None:
    """Is left out, as an engine ignores it in a chat."""
    for whole, less in zip(inside(schema), inside(kept)):
        assert bearable(whole, "format") == less


@pytest.mark.parametrize("schema", [
    text(pattern="^a{0,1000000000}$"), text(pattern="^a{3,}$"), text(pattern=r"^\{x\}{,5}$"),
    {"const": array(minItems=10**9)}, {"enum": [array(minItems=10**9)]},
    {"default": array(minItems=10**9)}, {"examples": [text(pattern="a{9999}")]},
    {"properties": {"minItems": {"type": "integer"}, "pattern": {"type": "string"}}},
    {"required": ["minItems"], "minItems": "many", "maxItems": None, "minLength": True},
    {"properties": 5, "items": True, "anyOf": "x", "$defs": []},
], ids=repr)
def test_what_is_no_limit(schema: dict[str, Any]) -> None:
    """A value, a name, a text and what only the engine can judge pass as they are."""
    assert bearable(schema, "format") == schema


@pytest.mark.parametrize("part", [
    array(maxItems=1000), array(minItems=1000), text(minLength=1000), text(maxLength=1000),
    text(minLength=7, maxLength=1000), text(pattern="^a{500}b{,9}c{2,500}$"),
], ids=repr)
def test_repetitions_add_up(part: dict[str, Any]) -> None:
    """A hundred thousand are borne, more are not."""
    names = [f"p{i}" for i in range(100)]
    most = {"properties": dict.fromkeys(names, part)}
    assert bearable(most, "format") == most
    more = {"anyOf": [most, text(maxLength=1)]}
    assert refusal(bearable, more, "format") == (
        "format: minItems, maxItems, minLength, maxLength and the repetitions in patterns come to "
        "more than 100000, the most that an engine has room for")
    less = {"anyOf": [most, text(minLength=-1), array(minItems=-(10**9))]}
    assert bearable(less, "format") == less


def test_a_schema_of_any_depth() -> None:
    """As deep as a request may be."""
    schema: dict[str, Any] = text(maxLength=10**9)
    for _ in range(120):
        schema = {"items": [schema]}
    made = bearable(schema, "format")
    assert repr(made) == repr(schema).replace(", 'maxLength': 1000000000", "")
    assert common(made) == made


@pytest.mark.parametrize(("schema", "kept"), [
    ({"$schema": "x", "title": "t", "description": "d", **FULL}, FULL),
    ({"type": "object", "patternProperties": {"^a{99999}$": {}}, "minProperties": 10**9,
      "not": {}, "if": {}, "x": 1}, {"type": "object"}),
    (array(uniqueItems=True, contains={}), array()),
    ({"type": "number", "multipleOf": 1e-9, "minimum": 1e300, "maximum": 3}, {"type": "number"}),
    ({"type": "integer", "multipleOf": 123456789, "minimum": 0, "exclusiveMinimum": True,
      "exclusiveMaximum": 2**63}, {"type": "integer", "minimum": 0}),
    ({"type": "integer", "minimum": -(2**63 - 1), "maximum": 2**63 - 1},) * 2,
    ({"oneOf": [WHOLE, {"title": "t"}], "anyOf": [WHOLE]}, {"anyOf": [WHOLE, {}]}),
    (text(format="date-time"),) * 2, (text(format="uuid"),) * 2,
    (text(format="int32"), text()), (text(format=["x"]), text()),
    (text(pattern=r"^(?:a|\d{3}\.)$"),) * 2,
    (text(pattern="^(?=a)b$"), text()), (text(pattern=r"^\bfoo$"), text()),
    (text(pattern=r"^(a)\1$"), text()), (text(pattern="(?<!a)b"), text()),
    ({"properties": {"not": {"not": {}}, "const": {"title": "t", "const": {"title": "t"}}}},
     {"properties": {"not": {}, "const": {"const": {"title": "t"}}}}),
], ids=lambda value: repr(value)[:60])
def test_what_completion_gets(schema: dict[str, Any], kept: dict[str, Any]) -> None:
    """Only what holds in a chat too: for a word that it does not know it drops all the others."""
    for whole, less in zip(inside(schema)[:4], inside(kept)):
        assert common(whole) == less


BOMB = array(minItems=10**9)
REFUSED = ": minItems asks for more than 2000, the most that an engine can count"
CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}


def tool(schema: dict[str, Any]) -> dict[str, Any]:
    """A chat with one tool that takes this."""
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}
    return {**CHAT, "tools": [{"type": "function", "function": function}]}


def test_every_way_to_an_engines_grammar() -> None:
    """Is closed to what would take all memory."""
    for fields in ({"format": BOMB}, {"options": {"format": BOMB}}):
        assert refusal(chat.ask, {**CHAT, **fields}, LLAMA, False) == f"format{REFUSED}"
        for more in ({}, {"raw": True}, {"template": "t"}, {"suffix": "s"}, {"context": [1]}):
            asked = {"prompt": "p", **fields, **more}
            assert refusal(generate.ask, asked, LLAMA, False) == f"format{REFUSED}"
    assert refusal(chat.ask, tool(BOMB), LLAMA, False) == (
        f"tools[0].function.parameters{REFUSED}")


def test_tools_are_passed_on_as_they_are() -> None:
    """They stand in the prompt too; an upper limit that is too high harms nobody there."""
    fields = tool(array(maxItems=10**9))
    assert chat.ask(fields, LLAMA, False).body["tools"] == fields["tools"]


def test_another_engine_judges_for_itself() -> None:
    """How its grammars are made is not known."""
    made = {"type": "json_schema", "json_schema": {"name": "schema", "schema": BOMB}}
    assert chat.ask({**CHAT, "format": BOMB}, OTHER, False).body["response_format"] == made
    raw = generate.ask({"prompt": "p", "raw": True, "format": BOMB}, OTHER, False)
    assert (raw.body["response_format"], raw.trials) == (made, ())
    assert chat.ask(tool(BOMB), OTHER, False).body["tools"] == tool(BOMB)["tools"]


@pytest.mark.parametrize("more", [
    {"raw": True}, {"template": "t"}, {"suffix": "s"}, {"context": [1]}], ids=repr)
def test_a_schema_is_tried_where_it_might_be_ignored(more: dict[str, Any]) -> None:
    """As a chat would have it; "json" needs no trial, nor does what is a chat."""
    schema = array(maxItems=10**9, uniqueItems=True)
    sent = generate.ask({"prompt": "p", "format": schema, **more}, LLAMA, False)
    assert sent.body["json_schema"] == array()
    named = {"name": "schema", "schema": array(uniqueItems=True)}
    assert sent.trials == (Lookup("/apply-template", {
        "messages": [{"role": "user", "content": "?"}],
        "response_format": {"type": "json_schema", "json_schema": named}}, "prompt"),)
    assert generate.ask({"prompt": "p", "format": "json", **more}, LLAMA, False).trials == ()
    assert generate.ask({"prompt": "p", "format": schema}, LLAMA, False).trials == ()
