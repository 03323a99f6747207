"""Tool calls: put together from fragments, told whole, one on a line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.api.ollama.answer import chat_lines, whole
from app.errors import GatewayError, Kind
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev
from tests.unit.ollama.answering import HEAD, answer, chat, done, generate, read, said

CALLED = chunk({}, "tool_calls")


def part(index: int | None = 0, found: str | None = None, name: str | None = None,
         arguments: Any = None) -> dict[str, Any]:
    """One delta of a call; what is None is not in it."""
    function = {"name": name, "arguments": arguments}
    fields = {"index": index, "id": found, "function": {k: v for k, v in function.items() if v}}
    return {key: value for key, value in fields.items() if value is not None}


def calls(*parts: dict[str, Any]) -> bytes:
    """One event with these deltas."""
    return chunk({"tool_calls": list(parts)})


def call(name: str, arguments: dict[str, Any], found: str | None = None, index: int = 0) -> Any:
    """A line with this one call."""
    function = {"index": index, "name": name, "arguments": arguments}
    return said("", tool_calls=[{"id": found, "function": function} if found
                                else {"function": function}])


WEATHER = call("weather", {"city": "Köln"}, "c1")
TOLD: dict[str, tuple[list[bytes], list[Any]]] = {
    "whole": ([calls(part(0, "c1", "weather", '{"city":"Köln"}'))], [WEATHER]),
    "fragments": ([calls(part(0, "c1", "weather")), calls(part(0, arguments='{"ci')),
                   calls(part(0, arguments='ty":"K')), calls(part(0, arguments='öln"}'))],
                  [WEATHER]),
    "arguments_begin_empty": ([calls(part(0, "c1", "weather", "")),
                               calls(part(0, arguments='{"city":"Köln"}'))], [WEATHER]),
    "id_again": ([calls(part(0, "c1", "weather")),
                  calls(part(0, "c1", arguments='{"city":"Köln"}'))], [WEATHER]),
    "name_again": ([calls(part(0, "c1", "weather")),
                    calls(part(0, "c1", "weather", '{"city":"Köln"}'))], [WEATHER]),
    "name_in_pieces": ([calls(part(0, "c1", "wea")), calls(part(0, "c1", "ther")),
                        calls(part(0, arguments='{"city":"Köln"}'))], [WEATHER]),
    "new_id_with_every_fragment": ([calls(part(0, "c1", "weather")),
                                    calls(part(0, "c2", arguments='{"city":"Köln"}'))], [WEATHER]),
    "no_id": ([calls(part(0, None, "f", "{}"))], [call("f", {})]),
    "no_index": ([calls(part(None, "c1", "f")), calls(part(None, arguments='{"a":1}'))],
                 [call("f", {"a": 1}, "c1")]),
    "id_no_text": ([chunk({"tool_calls": [{"id": 7, "function": {"name": "f"}}]})],
                   [call("f", {})]),
    "type_too": ([calls({**part(0, "c1", "f", "{}"), "type": "function"})], [call("f", {}, "c1")]),
    "older": ([chunk({"function_call": {"name": "f"}}),
               chunk({"function_call": {"arguments": '{"a":1}'}})], [call("f", {"a": 1})]),
    "two": ([calls(part(0, "c1", "f", "{}")), calls(part(1, "c2", "g", '{"a":1}'))],
            [call("f", {}, "c1"), call("g", {"a": 1}, "c2", 1)]),
    "two_in_one_event": ([calls(part(0, "c1", "f", "{}"), part(1, "c2", "g", "{}"))],
                         [call("f", {}, "c1"), call("g", {}, "c2", 1)]),
    "all_numbered_0": ([calls(part(0, "c1", "f", "{}"), part(0, "c2", "g", "{}"))],
                       [call("f", {}, "c1"), call("g", {}, "c2", 1)]),
    "not_numbered": ([calls(part(None, None, "f", "{}"), part(None, None, "g", "{}"))],
                     [call("f", {}), call("g", {}, index=1)]),
    "same_tool_twice": ([calls(part(0, "c1", "f", "{}"), part(1, "c2", "f", "{}"))],
                        [call("f", {}, "c1"), call("f", {}, "c2", 1)]),
    "numbers_with_gaps": ([calls(part(3, "c1", "f", "{}"), part(7, "c2", "g", "{}"))],
                          [call("f", {}, "c1"), call("g", {}, "c2", 1)]),
    "rubbish_between": ([calls(part(0, "c1", "f")), chunk({"tool_calls": [None, 5]}),
                         chunk({"tool_calls": {"index": 0}}), calls(part(0, arguments="{}"))],
                        [call("f", {}, "c1")]),
}
ARGUMENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "absent": (None, {}), "empty": ("", {}), "space": (" \n", {}), "null": ("null", {}),
    "object": ("{}", {}), "object_itself": ({"a": [1]}, {"a": [1]}),
    "big_number": ('{"a":18446744073709551615}', {"a": 2**64 - 1}),
    "nested": ('{"a":{"b":[{"c":null}]}}', {"a": {"b": [{"c": None}]}}),
    "escapes": ('{"a":"\\u5317\\n\\""}', {"a": "北\n\""}),
    "keys_like_ours": ('{"type":"x","error":"y"}', {"type": "x", "error": "y"}),
}
REFUSED: dict[str, tuple[Any, str]] = {
    "cut": ('{"a":', "that are not valid JSON"),
    "words": ("Köln", "that are not valid JSON"),
    "twice": ("{}{}", "that are not valid JSON"),
    "nan": ('{"a":NaN}', "that are not valid JSON"),
    "infinite": ('{"a":1e999}', "that are not valid JSON"),
    "nan_itself": ({"a": float("nan")}, "that are not valid JSON"),
    "deep": ('{"a":' * 5000 + "1" + "}" * 5000, "that are not valid JSON"),
    "list": ("[1]", "that are no JSON object"),
    "text": ('"{}"', "that are no JSON object"),
    "number": ("5", "that are no JSON object"),
    "list_itself": ([1], "that are no JSON object"),
}


@pytest.mark.parametrize(("events", "lines"), TOLD.values(), ids=TOLD)
def test_calls_are_told_whole(events: list[bytes], lines: list[Any]) -> None:
    """However an engine cuts and numbers them, each call is one line, numbered from 0."""
    told = chat(*events, CALLED, DONE)
    assert told[:-1] == lines
    assert told[-1]["done_reason"] == "stop"


@pytest.mark.parametrize(("arguments", "found"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_are_an_object(arguments: Any, found: dict[str, Any]) -> None:
    """Clients need an object, also where the engine has nothing to say in it."""
    assert chat(calls(part(0, "c1", "f", arguments)), CALLED, DONE) == [call("f", found, "c1"),
                                                                        done()]


@pytest.mark.parametrize(("arguments", "why"), REFUSED.values(), ids=REFUSED)
def test_arguments_that_are_no_object_are_an_error(arguments: Any, why: str) -> None:
    """Half an argument is never handed to a tool."""
    text = f"the engine sent a call of the tool 'f' with arguments {why}"
    events = [calls(part(0, "c1", "f", arguments)), CALLED, DONE]
    assert chat(ev("a"), *events) == [said("a"), {"error": text}]
    with pytest.raises(GatewayError) as caught:
        next(chat_lines(iter(events), answer()))
    assert (caught.value.kind, caught.value.message) == (Kind.UPSTREAM_ERROR, text)


def test_call_without_a_name_is_an_error() -> None:
    """A late fragment of a call that was told already has no call to belong to."""
    events = [calls(part(0, "c1", "f", "{}")), calls(part(1, "c2", "g", "{}")),
              calls(part(0, arguments="x")), CALLED]
    assert chat(*events)[2:] == [{"error": "the engine sent a tool call without a name"}]


def test_key_order_is_kept() -> None:
    """A model's own order of arguments gets to the tool."""
    text = '{"z":1,"a":{"y":1,"b":2},"m":3}'
    found = chat(calls(part(0, "c1", "f", text)), CALLED, DONE)
    function = found[0]["message"]["tool_calls"][0]["function"]
    assert json.dumps(function["arguments"], separators=(",", ":")) == text
    assert list(function) == ["index", "name", "arguments"]


@pytest.mark.parametrize(("cut", "found"), [
    ([rb'{\"a\":\"\ud83d', rb'\ude00\"}'], "😀"), ([rb'{\"a\":\"\ud83d', rb'\"}'], "\ud83d"),
], ids=["pair", "half"])
def test_surrogates_in_arguments(cut: list[bytes], found: str) -> None:
    """A pair that is cut between two fragments is one character; half of one stays what it is."""
    event = b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f",' \
            b'"arguments":"%b"}}]}}]}\n\n'
    lines = chat(*(event % fragment for fragment in cut), CALLED, DONE)
    assert lines[0] == call("f", {"a": found})


def test_call_is_told_when_the_next_begins() -> None:
    """The first of two calls does not wait for the second, nor the last for the usage."""
    taken: list[int] = []

    def pieces() -> Any:
        for i, piece in enumerate([calls(part(0, "a", "f", "{}")), calls(part(1, "b", "g")),
                                   calls(part(1, arguments="{}")), CALLED, DONE]):
            taken.append(i)
            yield piece

    seen = [len(taken) for _ in chat_lines(pieces(), answer())]
    assert seen == [2, 4, 5]


@pytest.mark.parametrize("end", [[CALLED, DONE], [CALLED], [DONE], [STOP]],
                         ids=["both", "reason", "done", "stop"])
def test_last_call_is_told_at_any_end(end: list[bytes]) -> None:
    """Whatever makes the answer whole makes its last call whole."""
    assert chat(calls(part(0, "c1", "f")), *end) == [call("f", {}, "c1"), done()]


def test_call_of_a_stream_that_breaks_is_not_told() -> None:
    """Without an end nobody knows whether the arguments were all."""
    assert chat(ev("a"), calls(part(0, "c1", "f", "{}")))[1:] == [
        {"error": "the engine ended its answer before it was complete"}
    ]


def test_text_beside_calls() -> None:
    """Words in front of, and together with, a call come first."""
    both = chunk({"content": "b", "tool_calls": [part(0, "c1", "f", "{}")]})
    assert chat(ev("a"), both, CALLED, DONE) == [
        said("a"), said("b"), call("f", {}, "c1"), done(eval_count=2)
    ]


def test_calls_of_generate_are_beside_the_response() -> None:
    """GenerateResponse has a field of its own for them."""
    line = generate(calls(part(0, "c1", "f", "{}")), CALLED, DONE)[0]
    function = {"index": 0, "name": "f", "arguments": {}}
    assert line == {**HEAD, "response": "", "done": False,
                    "tool_calls": [{"id": "c1", "function": function}]}


def test_calls_are_collected_where_there_is_no_stream() -> None:
    """One object with all calls in its message."""
    events = [ev("a"), calls(part(0, "c1", "f", "{}"), part(1, "c2", "g", "{}")), CALLED, DONE]
    message = whole(chat_lines(iter(events), answer()))["message"]
    assert list(message) == ["role", "content", "tool_calls"]
    assert [c["function"]["name"] for c in message["tool_calls"]] == ["f", "g"]
    assert message["content"] == "a"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner,
                                                                max_size=3), max_leaves=8)


@settings(max_examples=200, deadline=None, database=None)
@given(st.lists(st.tuples(st.dictionaries(st.text(max_size=4), VALUES, max_size=3),
                          st.lists(st.integers(0, 60), max_size=5)), min_size=1, max_size=4))
def test_any_cut_of_the_arguments_gives_the_same_calls(
    given_calls: list[tuple[dict[str, Any], list[int]]]
) -> None:
    """Objects come out as they went in, whatever the fragments."""
    pieces = []
    for i, (arguments, places) in enumerate(given_calls):
        text = json.dumps(arguments)
        edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
        pieces.append(calls(part(i, f"c{i}", "f")))
        pieces += [calls(part(i, arguments=text[a:b])) for a, b in zip(edges, edges[1:])]
    lines = read(chat_lines(iter([*pieces, data({"choices": []}), CALLED]), answer()))
    assert [line["message"]["tool_calls"] for line in lines[:-1]] == [
        [{"id": f"c{i}", "function": {"index": i, "name": "f", "arguments": arguments}}]
        for i, (arguments, _) in enumerate(given_calls)
    ]
