"""What counts as the end of a stream: the mark of its API where it stands, and nothing like it."""

from __future__ import annotations

import threading

import pytest

from tests.fakes.engine_steps import hold, reset, send
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.sse import read_events
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev, framed, head_for
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import BOOM, CHAT, MESSAGES, NATIVE, RESPONSES, Api
from tests.server.stream.asking import read_up_to
from tests.server.stream.outcome import error_in
from tests.server.stream.stream_faults import LAST_CHUNK

WAYS = pytest.mark.parametrize("way", [LAST_CHUNK, reset], ids=["clean_end", "reset"])
FIRST, SECOND = chunk({}, "stop", 0), chunk({}, "length", 1)


def tail_of(patient: GatewayProcess, engine: RawEngine, api: Api, body: bytes, way: Step,
            **fields: object) -> bytes:
    """What the gateway adds to a stream of these bytes that ends this way."""
    seen = threading.Event()
    engine.answer_with([send(head_for("chunked")), send(framed("chunked", body)), hold(seen), way])
    with RawClient(patient.url) as client:
        answer = client.request("POST", api.path, [], api.body(stream=True, **fields))
        assert read_up_to(answer, len(body)) == body
        seen.set()
        added = answer.body[len(body):]
    assert not answer.cut
    return added


def is_one_error(api: Api, body: bytes, added: bytes) -> None:
    """A client that reads all of it sees one event more, the error."""
    before, after = read_events(body)[0], read_events(body + added)[0]
    assert added, "nothing says that the stream broke off"
    assert error_in(api, after[-1]) and not read_events(body + added)[1]
    assert [error_in(api, event) for event in before] == [None] * len(before)


CHOICES: dict[str, tuple[int | None, bytes, bool]] = {
    "one_of_one": (None, FIRST, True),
    "one_of_two": (2, FIRST, False),
    "two_of_two": (2, FIRST + SECOND, True),
    "the_second_before_the_first": (2, SECOND + FIRST, True),
    "two_of_two_in_one_event": (2, data({"choices": [
        {"index": 0, "delta": {}, "finish_reason": "stop"},
        {"index": 1, "delta": {}, "finish_reason": "stop"}]}), True),
    "the_first_twice": (2, FIRST + FIRST, False),
    "two_of_three": (3, FIRST + SECOND, False),
    "done_alone": (2, DONE, True),
    "n_is_null": (None, FIRST, True),
}


@WAYS
@pytest.mark.parametrize(("choices", "body", "whole"), CHOICES.values(), ids=CHOICES)
def test_every_choice_has_to_end(patient: GatewayProcess, engine: RawEngine, way: Step,
                                 choices: int | None, body: bytes, whole: bool) -> None:
    """Of several answers in one stream, one that ended does not make the others whole."""
    body = ev("a") + body
    added = tail_of(patient, engine, CHAT, body, way, n=choices)
    if whole:
        assert added == b""
    else:
        is_one_error(CHAT, body, added)


NO_END: dict[str, tuple[Api, bytes]] = {
    "an_empty_reason": (CHAT, chunk({"content": "a"}, "")),
    "a_reason_in_a_comment": (CHAT, b': {"finish_reason":"stop"}\n\n'),
    "a_reason_in_a_text": (CHAT, ev('"finish_reason":"stop"')),
    "a_reason_in_a_tool_call": (CHAT, chunk({"tool_calls": [
        {"index": 0, "function": {"arguments": '{"finish_reason":"stop"}'}}]})),
    "done_in_a_comment": (CHAT, b": data: [DONE]\n\n"),
    "done_in_a_text": (CHAT, ev("\n\ndata: [DONE]\n\n")),
    "done_in_another_field": (CHAT, b"xdata: [DONE]\nid: data: [DONE]\n\n"),
    "done_within_a_line": (CHAT, b"data: data: [DONE]\n\n"),
    "no_error": (CHAT, data({"error": None, "choices": []})),
    "an_error_in_a_comment": (CHAT, b': data: {"error":{"message":"x"}}\n\n'),
    "stop_in_a_text": (NATIVE, NATIVE.event('"stop":true')),
    "stop_is_a_list": (NATIVE, data({"content": "a", "stop": False,
                                     "generation_settings": {"stop": ["true"]}})),
    "stop_in_a_comment": (NATIVE, b': "stop":true\n\n'),
    "message_stop_in_a_text": (MESSAGES, MESSAGES.event('{"type":"message_stop"}')),
    "message_stop_as_a_name": (MESSAGES, b"event: message_stop\n\n"),
    "completed_in_a_text": (RESPONSES, RESPONSES.event('"type":"response.completed"')),
    "in_progress": (RESPONSES, data({"type": "response.created", "response": {
        "status": "in_progress", "error": None, "incomplete_details": None}})),
}


@WAYS
@pytest.mark.parametrize(("api", "body"), NO_END.values(), ids=NO_END)
def test_what_only_looks_like_an_end_is_none(
        patient: GatewayProcess, engine: RawEngine, api: Api, body: bytes, way: Step) -> None:
    """Marks in texts, comments and other fields do not hide that the engine broke off."""
    body = api.event("1") + body
    is_one_error(api, body, tail_of(patient, engine, api, body, way))


ENDS: dict[str, tuple[Api, bytes]] = {
    "reason_with_content": (CHAT, chunk({"content": "a"}, "stop")),
    "reason_of_tools": (CHAT, chunk({}, "tool_calls")),
    "reason_with_spaces": (CHAT, STOP.replace(b'"finish_reason": ', b'"finish_reason"  :  ')),
    "reason_packed": (CHAT, STOP.replace(b": ", b":")),
    "done_packed": (CHAT, b"data:[DONE]\n\n"),
    "done_after_carriage_return": (CHAT, b": x\rdata: [DONE]\r\r"),
    "native_packed": (NATIVE, b'data: {"content":"","stop":true}\n\n'),
    "failed": (RESPONSES, data({"type": "response.failed", "response": {
        "status": "failed", "error": {"code": "server_error", "message": "boom"}}})),
    "incomplete": (RESPONSES, data({"type": "response.incomplete", "response": {}})),
    "error_type": (RESPONSES, data({"type": "error", "code": "x", "message": "boom"}, "error")),
    "error_first": (CHAT, data({"error": BOOM})),
    "error_packed": (CHAT, b'data:{"error":{"message":"boom"}}\n\n'),
    "error_after_other_keys": (CHAT, data({"id": "c", "choices": [], "error": BOOM})),
    "error_as_text": (CHAT, data({"error": "boom"})),
    "error_with_a_name": (CHAT, data({"error": BOOM}, "error")),
    "error_over_two_lines": (CHAT, b'data: {\ndata: "error":{"message":"boom"}}\n\n'),
    "error_in_anthropic_form": (MESSAGES, data(
        {"error": {"type": "api_error", "message": "boom"}, "type": "error"}, "error")),
    "error_in_a_native_stream": (NATIVE, data({"error": BOOM})),
}


@WAYS
@pytest.mark.parametrize(("api", "body"), ENDS.values(), ids=ENDS)
def test_an_end_is_an_end_however_it_is_written(
        patient: GatewayProcess, engine: RawEngine, api: Api, body: bytes, way: Step) -> None:
    """Nothing is added to a stream that has ended, or whose engine has told its error."""
    assert tail_of(patient, engine, api, api.event("1") + body, way) == b""


UNENDED: dict[str, tuple[Api, bytes]] = {
    "done": (CHAT, DONE), "reason": (CHAT, STOP), "native": (NATIVE, NATIVE.end),
    "message_stop": (MESSAGES, MESSAGES.end), "completed": (RESPONSES, RESPONSES.end),
    "error": (CHAT, data({"error": BOOM})),
}


@WAYS
@pytest.mark.parametrize("missing", [1, 2], ids=["empty_line", "line_end"])
@pytest.mark.parametrize(("api", "end"), UNENDED.values(), ids=UNENDED)
def test_an_end_that_is_not_ended_is_no_second_end(
        patient: GatewayProcess, engine: RawEngine, api: Api, end: bytes, missing: int,
        way: Step) -> None:
    """Where the last event's own end is missing, no client sees both that event and an error."""
    body = api.event("1") + end[:-missing]
    events, _ = read_events(body + tail_of(patient, engine, api, body, way))
    told = [error_in(api, event) for event in events]
    assert sum(map(bool, told)) + any(map(api.ends, events)) <= 1
