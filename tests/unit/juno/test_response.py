"""An engine's answer becomes Juno's, whole or piece by piece."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.api.juno.response import answer, at_once, events, streamed
from app.errors import GatewayError, Kind
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev

LENGTH = chunk({}, "length")
CUT = "the engine ended its answer before it was complete"
NO_COMPLETION = "the engine sent an answer that is no chat completion"
NO_REASON = "the engine sent an end without a finish_reason"
HI = {"content": "hi"}


def completion(message: Any, finish: Any = "stop", **fields: Any) -> bytes:
    """A whole chat completion."""
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"choices": [choice], **fields}).encode()


def token(text: str) -> dict[str, Any]:
    """An event with a piece of text."""
    return {"requestId": "r", "token": text, "isComplete": False}


def last(reason: str) -> dict[str, Any]:
    """The event that is complete."""
    return {"requestId": "r", "token": "", "isComplete": True, "finishReason": reason}


def told(*pieces: bytes) -> list[dict[str, Any]]:
    """The events made of an engine's bytes."""
    return list(events(streamed(iter(pieces)), "r"))


@pytest.mark.parametrize(("message", "text"), [
    ({"content": "hi 北😀"}, "hi 北😀"), ({"content": ""}, ""),
    ({"content": "x", "reasoning_content": "hm"}, "x"),
    ({"content": None, "reasoning_content": "hm"}, ""), ({"reasoning": "hm"}, ""),
    ({"content": None, "tool_calls": [{"id": "c"}]}, ""), ({"refusal": "no"}, "")])
def test_the_text_is_the_content(message: Any, text: str) -> None:
    """Whatever else an engine says is none."""
    assert answer(completion(message), "r")["text"] == text


@pytest.mark.parametrize(("finish", "reason"), [
    ("stop", "stop"), ("length", "length"), ("tool_calls", "stop"), ("function_call", "stop"),
    ("content_filter", "error"), ("error", "error")])
def test_there_are_three_reasons(finish: str, reason: str) -> None:
    """For all those that engines have, whole and in a stream."""
    assert answer(completion(HI, finish), "r")["finishReason"] == reason
    assert told(ev("a"), chunk({}, finish), DONE) == [token("a"), last(reason)]


@pytest.mark.parametrize(("finish", "message"), [
    ("eos", 'an unknown finish_reason: "eos"'), (5, "an unknown finish_reason: 5"),
    (["length"], 'an unknown finish_reason: ["length"]'), (True, "an unknown finish_reason: true"),
    ("x" * 99, f'an unknown finish_reason: "{"x" * 59}')], ids=range(5))
def test_a_reason_that_nobody_knows_is_no_end(finish: Any, message: str) -> None:
    """Whether the answer is whole, nobody can say."""
    for attempt in (lambda: answer(completion(HI, finish), "r"),
                    lambda: told(chunk({"content": "a"}, finish))):
        with pytest.raises(GatewayError) as caught:
            attempt()
        assert caught.value.message == f"the engine sent {message}"
    assert told(ev("a"), chunk({}, finish))[-1]["finishReason"] == "error"


@pytest.mark.parametrize(("fields", "tokens", "prompt"), [
    ({"usage": {"prompt_tokens": 3, "completion_tokens": 2}}, 2, 3),
    ({"usage": {"prompt_tokens": 0, "completion_tokens": 0}}, 0, 0),
    ({"usage": {"completion_tokens": 2}}, 2, None), ({"usage": None}, None, None),
    ({"usage": [1]}, None, None), ({}, None, None),
    ({"usage": {"prompt_tokens": "3", "completion_tokens": True}}, None, None)])
def test_counts_are_the_engines(fields: dict[str, Any], tokens: Any, prompt: Any) -> None:
    """Nothing is counted here, or guessed."""
    found = answer(completion(HI, **fields), "r")
    assert (found["tokenCount"], found["promptTokenCount"]) == (tokens, prompt)


def test_an_answer_has_its_fields_in_order() -> None:
    """As Juno writes them."""
    assert list(answer(completion(HI), "r")) == [
        "requestId", "text", "tokenCount", "promptTokenCount", "finishReason"]


@pytest.mark.parametrize(("document", "message"), [
    (b"", "the engine sent an answer that is not JSON"),
    (b"hello", "the engine sent an answer that is not JSON"),
    (b"[]", "the engine sent an answer that is no JSON object"),
    (b"{}", NO_COMPLETION),
    *[(json.dumps({"choices": choices}).encode(), NO_COMPLETION) for choices in (
        {}, [], [5], [{}], [{"message": None}], [{"message": "hi", "finish_reason": "stop"}],
        [{"index": 1, "message": {"content": "x"}, "finish_reason": "stop"}])],
    *[(completion(message), "the engine sent an answer without a text") for message in (
        {}, {"content": None}, {"content": None, "tool_calls": [], "refusal": None})],
    (completion({"content": [{"type": "text", "text": "x"}]}),
     "the engine sent a content that is no text"),
    *[(completion(HI, finish), "the engine sent an answer without a finish_reason")
      for finish in (None, "")],
    (b'{"error":{"message":"boom"}}', "boom"), (b'{"error":"boom"}', "boom"),
    (b'{"error":{"code":1}}', "the engine reported an error"),
    (b"[" * 100_000, "the engine sent an answer that is not JSON")], ids=range(21))
def test_what_is_no_answer_is_the_engines_fault(document: bytes, message: str) -> None:
    """It never looks like an empty one."""
    for attempt in (lambda: answer(document, "r"), lambda: list(at_once(iter([document])))):
        with pytest.raises(GatewayError) as caught:
            attempt()
        assert (caught.value.kind, caught.value.message) == (Kind.UPSTREAM_ERROR, message)


STREAMS: dict[str, tuple[list[bytes], list[str], str]] = {
    "usual": ([chunk({"role": "assistant", "content": ""}), ev("a"), ev("b"), STOP, DONE],
              ["a", "b"], "stop"),
    "length": ([ev("a"), LENGTH, DONE], ["a"], "length"),
    "reason_with_text": ([ev("a"), chunk({"content": "b"}, "stop")], ["a", "b"], "stop"),
    "no_done": ([ev("a"), STOP], ["a"], "stop"),
    "no_text": ([STOP, DONE], [], "stop"),
    "reason_twice": ([ev("a"), LENGTH, STOP, DONE], ["a"], "length"),
    "text_behind": ([ev("a"), STOP, ev("b"), DONE], ["a"], "stop"),
    "tools": ([chunk({"tool_calls": [{"index": 0}]}), chunk({}, "tool_calls")], [], "stop"),
    "thoughts": ([chunk({"reasoning_content": "hm"}), ev("a"), STOP], ["a"], "stop"),
    "other_choice": ([chunk({"content": "x"}, "stop", 1), ev("a"), STOP], ["a"], "stop"),
    "usage": ([ev("a"), data({"choices": [], "usage": {}}), STOP], ["a"], "stop"),
    "noise": ([b": ping\n\n", b"event: message\nid: 7\n", ev("a"), data({}), STOP], ["a"], "stop"),
    "engine_says_error": ([ev("a"), chunk({}, "error")], ["a"], "error"),
    "last_event_open": ([ev("a"), STOP[:-1]], ["a"], "stop"),
    "null_delta": ([data({"choices": [{"delta": None}]}), ev("a"), STOP], ["a"], "stop"),
}


@pytest.mark.parametrize(("pieces", "texts", "reason"), STREAMS.values(), ids=STREAMS)
def test_a_stream_is_its_text_and_one_end(
        pieces: list[bytes], texts: list[str], reason: str) -> None:
    """One event for each piece of text, and one that is complete."""
    assert told(*pieces) == [*map(token, texts), last(reason)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_a_stream_may_be_cut_anywhere(size: int) -> None:
    """In a character, too."""
    body = b"".join([ev("北"), ev("é😀"), ev("\n"), STOP, DONE])
    pieces = [body[at:at + size] for at in range(0, len(body), size)]
    assert told(*pieces) == [token("北"), token("é😀"), token("\n"), last("stop")]


def failing(*pieces: bytes) -> Iterator[bytes]:
    """These pieces, then the engine is gone."""
    yield from pieces
    raise GatewayError(Kind.ENGINE_TIMEOUT, "silent")


@pytest.mark.parametrize(("pieces", "message"), [
    ([], CUT), ([b": ping\n\n"], CUT), ([b"data: "], CUT), ([b"dat"], CUT),
    ([DONE], NO_REASON), ([b"data: [DONE]"], NO_REASON),
    ([chunk({"content": ["b"]}), STOP], "the engine sent a content that is no text"),
    ([ev("b")[:20]], "the engine sent an event that is not JSON"),
    ([data({"error": {"code": 500, "message": "boom"}}), STOP, DONE], "boom"),
    ([data({"error": "boom"})], "boom"), ([b'error: {"message":"boom"}\n\n'], "boom"),
    ([b"data: x\n\n", STOP], "the engine sent an event that is not JSON"),
    ([b"data: \xff\n\n", STOP], "the engine sent an event that is not JSON"),
    ([data([1]), STOP], "the engine sent an event that is no JSON object")], ids=range(14))
def test_a_stream_that_breaks_off_says_so(pieces: list[bytes], message: str) -> None:
    """Once, as its last event; before the first one it is no stream at all."""
    found = told(ev("a"), *pieces)
    error = {"message": message, "type": "server_error", "param": None, "code": "upstream_error"}
    assert found == [token("a"), {**last("error"), "error": error}]
    with pytest.raises(GatewayError) as caught:
        told(*pieces)
    assert (caught.value.kind, caught.value.message) == (Kind.UPSTREAM_ERROR, message)


def test_a_failure_of_the_engine_keeps_its_kind() -> None:
    """By which the client knows what to do."""
    found = list(events(streamed(failing(ev("a"))), "r"))
    assert found[-1]["error"]["code"] == "engine_timeout"
    with pytest.raises(GatewayError) as caught:
        list(events(streamed(failing(b": ping\n\n")), "r"))
    assert caught.value.kind is Kind.ENGINE_TIMEOUT


def test_a_failure_behind_the_end_is_none() -> None:
    """Never both: an answer that is over stays so."""
    assert list(events(streamed(failing(ev("a"), STOP)), "r")) == [token("a"), last("stop")]


def test_the_end_is_not_waited_for() -> None:
    """Nothing is taken of the engine once it has said that it is over."""
    pieces = iter([ev("a"), STOP, DONE])
    assert list(events(streamed(pieces), "r")) == [token("a"), last("stop")]
    assert list(pieces) == [DONE]


@pytest.mark.parametrize(("message", "finish", "expected"), [
    (HI, "length", [token("hi"), last("length")]),
    (HI, "stop", [token("hi"), last("stop")]), ({"content": ""}, "stop", [last("stop")])])
def test_a_whole_answer_is_told_as_a_stream(
        message: Any, finish: Any, expected: list[dict[str, Any]]) -> None:
    """For engines that will not stream."""
    body = completion(message, finish)
    assert list(events(at_once(iter([body[:9], body[9:]])), "r")) == expected
