"""Tools: what of them goes to the engine, and its calls as a client gets them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import DONE, Gates, chunk, ev, stream
from tests.server.calls import JSON, ollama_error, to_bytes
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import CHAT, HI, chat, sent
from tests.server.ollama.engine_answers import COUNTS, FIRST
from tests.server.ollama.ndjson import arriving, content, failure, success, whole
from tests.server.ollama.served_models import OTHER, TOOLER

TOOL = {"type": "function", "function": {
    "name": "weather", "description": "of a city", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
CALLED = [chunk({}, "tool_calls"), COUNTS, DONE]


def part(index: int, call_id: str = "", name: str = "", arguments: str | None = None) -> bytes:
    """One event with one delta of one call, as llama-server sends them."""
    function = {"name": name} if name else {}
    if arguments is not None:
        function["arguments"] = arguments
    begun = {"id": call_id, "type": "function"} if call_id else {}
    return chunk({"tool_calls": [{"index": index, **begun, "function": function}]})


def call(index: int, call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One call as Ollama tells it."""
    return {"id": call_id, "function": {"index": index, "name": name, "arguments": arguments}}


PARALLEL = [part(0, "c1", "weather"), part(0, arguments='{"ci'), part(0, arguments='ty":"Kö'),
            part(0, arguments='ln"}'), part(1, "c2", "time", "{}")]
TWO_CALLS = [call(0, "c1", "weather", {"city": "Köln"}), call(1, "c2", "time", {})]
CALLS: dict[str, tuple[list[bytes], list[dict[str, Any]]]] = {
    "two_parallel": (PARALLEL, TWO_CALLS),
    "no_arguments_at_all": ([part(0, "c1", "time")], [call(0, "c1", "time", {})]),
    "empty_arguments": ([part(0, "c1", "time", "")], [call(0, "c1", "time", {})]),
    "arguments_at_once": ([part(0, "c1", "f", '{"a":{"b":[1,null]}}')],
                          [call(0, "c1", "f", {"a": {"b": [1, None]}})]),
    "arguments_byte_by_byte": (
        [part(0, "c1", "f"), *[part(0, arguments=each) for each in '{"a": "北\\n"}']],
        [call(0, "c1", "f", {"a": "北\n"})]),
    "both_in_one_event": (
        [chunk({"tool_calls": [
            {"index": i, "id": f"c{i}", "function": {"name": "f", "arguments": "{}"}}
            for i in range(3)]})],
        [call(i, f"c{i}", "f", {}) for i in range(3)]),
    "thinking_tools": ([chunk({"reasoning_content": "Hm"}), part(0, "c1", "time")],
                       [call(0, "c1", "time", {})]),
}


@pytest.mark.parametrize("stream_field", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(("events", "calls"), CALLS.values(), ids=CALLS)
def test_calls_come_whole(gateway: GatewayProcess, engine: RawEngine, events: list[bytes],
                          calls: list[dict[str, Any]], stream_field: bool) -> None:
    """One on a line before the last, which has none; collected where there is no stream."""
    engine.answer_with(stream("chunked", [FIRST, *events, *CALLED]))
    answer = chat(gateway.url, model=TOOLER, tools=[TOOL], stream=stream_field)
    if not stream_field:
        last = whole(answer)
        assert last["message"]["tool_calls"] == calls
    else:
        said, last = success(answer)
        told = [line["message"] for line in said if "tool_calls" in line["message"]]
        assert [message["tool_calls"] for message in told] == [[each] for each in calls]
        assert {message["content"] for message in told} == {""}
        assert "tool_calls" not in last["message"]
    assert last["done_reason"] == "stop" and last["eval_count"] == 3


def test_keys_of_arguments_keep_their_order(gateway: GatewayProcess, engine: RawEngine) -> None:
    """And numbers their value."""
    text = '{"z":1,"a":18446744073709551615,"m":0.1}'
    engine.answer_with(stream("chunked", [part(0, "c1", "f", text), *CALLED]))
    answer = chat(gateway.url, model=TOOLER, tools=[TOOL])
    assert success(answer) and f'"arguments":{text}'.encode() in answer.body


def test_words_before_a_call(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Come at once, on lines of their own."""
    gates = Gates("chunked", [ev("Let me see. "), part(0, "c1", "time"), b"".join(CALLED)])
    engine.answer_with(gates.script)
    body = to_bytes({"model": TOOLER, "messages": HI, "tools": [TOOL]})
    with RawClient(gateway.url) as client:
        found = arriving(client.request("POST", CHAT, JSON, body))
        assert next(found)["message"] == {"role": "assistant", "content": "Let me see. "}
        for place in range(3):
            gates.seen(place)
        called, last = list(found)
    assert called["message"]["tool_calls"] == [call(0, "c1", "time", {})]
    assert last["done"] is True and last["done_reason"] == "stop"


@pytest.mark.parametrize("arguments", ['{"a":', "Köln", "[1]", '"x"', "5", '{"a":NaN}', "{}{}"])
def test_broken_arguments_are_an_error(
        gateway: GatewayProcess, engine: RawEngine, arguments: str) -> None:
    """No tool is run on half an argument; never a text in place of the object."""
    events = [ev("a"), part(0, "c1", "f", arguments), *CALLED]
    engine.answer_with(stream("chunked", events))
    said, text = failure(chat(gateway.url, model=TOOLER, tools=[TOOL]))
    assert content(said) == "a" and "f" in text
    assert not any("tool_calls" in line["message"] for line in said)
    answer = chat(gateway.url, model=TOOLER, tools=[TOOL], stream=False)
    assert (answer.status, bool(ollama_error(answer))) == (502, True)


def test_a_call_that_breaks_off_is_none(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The engine ends in the midst of it."""
    engine.answer_with(stream("chunked", [ev("a"), part(0, "c1", "f", '{"a":1}')]))
    said, _ = failure(chat(gateway.url, model=TOOLER, tools=[TOOL]))
    assert [line["message"] for line in said] == [{"role": "assistant", "content": "a"}]


def asked(gateway: GatewayProcess, engine: RawEngine, **fields: Any) -> dict[str, Any]:
    """What the engine is asked for a chat with tools, which has to succeed."""
    assert success(chat(gateway.url, **{"model": TOOLER, "tools": [TOOL], **fields}))
    return sent(engine)


def test_tools_go_unchanged(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Keywords of a schema that Ollama would drop included."""
    odd = {"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {"a": {"type": ["string", "null"], "pattern": "^x",
                                               "default": None}}, "additionalProperties": False}}}
    assert asked(gateway, engine, tools=[TOOL, odd])["tools"] == [TOOL, odd]


@pytest.mark.parametrize("tool", [
    {"function": {"name": "f"}}, {"type": "function", "function": {"name": "f"}},
    {"type": "function", "function": {"name": "f", "parameters": None}},
    {"type": "", "function": {"name": "f", "parameters": {}}}], ids=repr)
def test_what_engines_insist_on_is_added(
        gateway: GatewayProcess, engine: RawEngine, tool: dict[str, Any]) -> None:
    """A type, and parameters that are an object's."""
    [made] = asked(gateway, engine, tools=[tool])["tools"]
    assert made["type"] == "function" and made["function"]["name"] == "f"
    assert made["function"]["parameters"]["type"] == "object"


@pytest.mark.parametrize("tools", [{}, {"tools": []}, {"tools": None}], ids=repr)
def test_no_tools_are_no_field(
        gateway: GatewayProcess, engine: RawEngine, tools: dict[str, Any]) -> None:
    """Zed sends an empty list with every chat."""
    assert success(chat(gateway.url, model=TOOLER, **tools))
    assert not {"tools", "tool_choice"} & set(sent(engine))


def test_no_probabilities_beside_tools(gateway: GatewayProcess, engine: RawEngine) -> None:
    """llama-server refuses both in one stream: the tools count."""
    body = asked(gateway, engine, logprobs=True, top_logprobs=3)
    assert body["tools"] == [TOOL] and not {"logprobs", "top_logprobs"} & set(body)


def history(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """A conversation with these messages in it."""
    return [{"role": "user", "content": "q"}, *messages]


def calling(*calls: dict[str, Any]) -> dict[str, Any]:
    """The message of an assistant that calls tools."""
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}


def bare(name: str, **arguments: Any) -> dict[str, Any]:
    """A call without an id, as Home Assistant and Continue send it back."""
    return {"function": {"name": name, "arguments": arguments}}


F, G = bare("f", a=1), bare("g")
# The results, and the names of the calls that they belong to.
HISTORIES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[str]]] = {
    "home_assistant": (calling(F, G), [{"content": "1"}, {"content": "2"}], ["f", "g"]),
    "llm_ollama": (calling(F, G), [{"name": "g", "content": "2"}, {"name": "f", "content": "1"}],
                   ["g", "f"]),
    "tool_name": (calling(F, G), [{"tool_name": "g", "content": "2"},
                                  {"tool_name": "f", "content": "1"}], ["g", "f"]),
    "continue": (calling(F), [{"content": "1"}], ["f"]),
    "same_tool_twice": (calling(F, F), [{"tool_name": "f", "content": "1"},
                                        {"tool_name": "f", "content": "2"}], ["f", "f"]),
    "as_the_gateway_told_it": (
        {**calling(call(0, "c1", "f", {"a": 1}), call(1, "c2", "g", {})), "thinking": "Hm"},
        [{"tool_call_id": "c2", "tool_name": "g", "content": "2"},
         {"tool_call_id": "c1", "tool_name": "f", "content": "1"}], ["g", "f"]),
    "arguments_as_text": (calling({"function": {"name": "f", "arguments": '{"a":1}'}}),
                          [{"content": "1"}], ["f"]),
    "no_arguments": (calling({"function": {"name": "f"}}), [{"content": "1"}], ["f"]),
    "typed": (calling({"type": "function", "id": "x", **F}),
              [{"tool_call_id": "x", "content": "1"}], ["f"]),
}


@pytest.mark.parametrize("model", [TOOLER, OTHER])
@pytest.mark.parametrize(("message", "results", "owners"), HISTORIES.values(), ids=HISTORIES)
def test_a_result_finds_its_call(
        gateway: GatewayProcess, engine: RawEngine, other: RawEngine, model: str,
        message: dict[str, Any], results: list[dict[str, Any]], owners: list[str]) -> None:
    """By id, name or order; each call has a type, an id of its own and its arguments as text."""
    messages = history(message, *[{"role": "tool", **result} for result in results])
    working = engine if model == TOOLER else other
    _, made, *answered = asked(gateway, working, model=model, messages=messages)["messages"]
    names = {made_call["id"]: made_call["function"]["name"] for made_call in made["tool_calls"]}
    assert len(names) == len(message["tool_calls"]) and all(names)
    for made_call in made["tool_calls"]:
        assert set(made_call) == {"id", "type", "function"} and made_call["type"] == "function"
        assert isinstance(json.loads(made_call["function"]["arguments"]), dict)
    assert [names[result["tool_call_id"]] for result in answered] == owners
    assert len({result["tool_call_id"] for result in answered}) == len(answered)
    assert [result["content"] for result in answered] == [result["content"] for result in results]


def test_ids_stay_as_a_conversation_grows(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Else the engine would have to read all of it again."""
    begun = history(calling(F, G), {"role": "tool", "content": "1"},
                    {"role": "tool", "content": "2"})
    assert success(chat(gateway.url, model=TOOLER, messages=begun))
    grown = [*begun, {"role": "assistant", "content": "done"}, *HI]
    assert success(chat(gateway.url, model=TOOLER, messages=grown))
    first, second = [json.loads(request.body)["messages"] for request in engine.requests]
    assert second[:len(first)] == first
