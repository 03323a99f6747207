"""How a chat ends: by one line that says so or by one that says what failed, in the right time."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from tests.fakes.engine_steps import COMPLETION, JSON_TYPE, close, reply, reset, send, silence
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev, framed, head_for, stream
from tests.server.calls import JSON, ollama_error, to_bytes
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import CHAT, WORK, chat
from tests.server.ollama.engine_answers import COUNTS, streamed
from tests.server.ollama.ndjson import arriving, content, failure, success, whole
from tests.server.stream.apis import Api
from tests.server.stream.stream_faults import FAULTS, Fault

# What the engine streams behind /api/chat, as the table of faults wants to know it.
ENGINES = Api(CHAT, WORK[CHAT], ev, STOP + DONE, lambda event: event.data == "[DONE]",
              data({"error": {"code": 500, "message": "boom", "type": "server_error"}}))
BODY = to_bytes(WORK[CHAT])
LAST_CHUNK = send(b"0\r\n\r\n")


def body(*pieces: bytes, framing: str = "chunked") -> list[Step]:
    """A head and these pieces, without an end."""
    size = sum(map(len, pieces)) + 1000
    return [send(head_for(framing, size)), *(send(framed(framing, piece)) for piece in pieces)]


COMPLETE: dict[str, Sequence[Step]] = {
    "without_done": stream("chunked", [ev("a"), STOP]),
    "without_done_by_length": stream("length", [ev("a"), STOP]),
    "without_done_by_close": stream("close", [ev("a"), STOP]),
    "kept_open_behind_the_last_chunk": [*stream("chunked", [ev("a"), STOP, DONE]), silence],
    "kept_open_behind_done": [*body(ev("a"), STOP, DONE), silence],
    "kept_open_behind_done_by_length": [*body(ev("a"), STOP, DONE, framing="length"), silence],
    "kept_open_behind_done_unframed": [*body(ev("a"), STOP, DONE, framing="close"), silence],
    "counts_then_kept_open": [*body(ev("a"), STOP, COUNTS, DONE), silence],
    "done_without_a_reason": stream("chunked", [ev("a"), DONE]),
    "done_twice": stream("chunked", [ev("a"), STOP, STOP, DONE, DONE]),
    "text_behind_done": stream("chunked", [ev("a"), STOP, DONE, ev("b")]),
    "reset_behind_done": [*body(ev("a"), STOP, DONE), reset],
    "last_event_without_an_empty_line": stream("chunked", [ev("a"), STOP, b"data: [DONE]\n"]),
}


@pytest.mark.parametrize("stream_field", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("script", COMPLETE.values(), ids=COMPLETE)
def test_a_complete_answer_ends_at_once(patient: GatewayProcess, engine: RawEngine,
                                        script: Sequence[Step], stream_field: bool) -> None:
    """Once the engine has said that it is over, the end of its connection is not waited for."""
    engine.answer_with(script)
    answer = chat(patient.url, stream=stream_field)
    if not stream_field:
        assert whole(answer)["message"]["content"] == "a"
        return
    said, last = success(answer)
    assert content(said) == "a" and last["done_reason"] == "stop"


def test_an_answer_that_is_no_stream_is_told_as_one(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """An engine that will not stream gives a whole completion: its text, then the end."""
    engine.answer_with(reply(200, COMPLETION))
    said, last = success(chat(gateway.url))
    assert (content(said), last["done_reason"]) == ("hi", "stop")
    assert (last["prompt_eval_count"], last["eval_count"]) == (3, 2)


def ask_and_see(url: str, fault: Fault, engine: RawEngine) -> RawAnswer:
    """A chat whose engine fails once two lines have been seen; the answer is whole."""
    seen = threading.Event()
    engine.answer_with(fault.script(ENGINES, 2, seen))
    with RawClient(url) as client:
        answer = client.request("POST", CHAT, JSON, BODY)
        found = arriving(answer)
        assert [next(found)["message"]["content"] for _ in range(2)] == ["1", "2"]
        seen.set()
        return answer.whole()


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_broken_stream_ends_with_an_error_line(
        gateway: GatewayProcess, engine: RawEngine, fault: Fault) -> None:
    """What came before stays; then one object with a text, and the body ends cleanly."""
    said, text = failure(ask_and_see(gateway.url, fault, engine))
    assert content(said)[:2] == "12"
    assert "<" not in text and "Traceback" not in text
    assert "did not answer" not in text


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_broken_answer_is_a_502(
        gateway: GatewayProcess, engine: RawEngine, fault: Fault) -> None:
    """Without a stream half an answer is none."""
    seen = threading.Event()
    seen.set()
    engine.answer_with(fault.script(ENGINES, 2, seen))
    answer = chat(gateway.url, stream=False)
    assert ollama_error(answer)
    assert answer.status == 502


def event(value: object) -> bytes:
    """An event whose data is this value."""
    return data(value)


TOLD: dict[str, tuple[bytes, str]] = {
    "object": (event({"error": {"code": 500, "message": "boom", "type": "server_error"}}), "boom"),
    "context": (event({"error": {"code": 500, "message": "Context size has been exceeded."}}),
                "Context size has been exceeded."),
    "text": (event({"error": "boom"}), "boom"),
    "named": (b"event: error\n" + event({"error": {"message": "boom"}}), "boom"),
    "field_error": (b'error: {"code":500,"message":"boom"}\n\n', "boom"),
    "no_json": (b"data: hello\n\n", "JSON"),
    "list": (event([1]), "JSON object"),
    "nan": (b'data: {"choices":[{"index":0,"delta":{"content":"a"}}],"x":NaN}\n\n', ""),
}


@pytest.mark.parametrize("then", [[LAST_CHUNK], [close], [reset], [silence]],
                         ids=["end", "close", "reset", "silence"])
@pytest.mark.parametrize("name", [name for name in TOLD if name != "nan"])
def test_an_error_that_the_engine_tells_is_the_last_line(
        patient: GatewayProcess, engine: RawEngine, name: str, then: list[Step]) -> None:
    """In its own words, at once, and once."""
    told, text = TOLD[name]
    engine.answer_with([*body(ev("1"), told), *then])
    said, error = failure(chat(patient.url))
    assert content(said) == "1" and text in error


@pytest.mark.parametrize(("told", "text"), TOLD.values(), ids=TOLD)
def test_every_line_is_json_whatever_comes(
        gateway: GatewayProcess, engine: RawEngine, told: bytes, text: str) -> None:
    """A strict reader reads everything, also of an event that is not strict JSON itself."""
    engine.answer_with([*body(ev("1"), told, STOP, DONE), LAST_CHUNK])
    answer = chat(gateway.url)
    assert (failure if text else success)(answer)


def test_an_error_behind_the_end_is_none(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Never both: what is complete stays so when only its counts fail to come."""
    engine.answer_with([*body(ev("a"), STOP), reset])
    assert success(chat(gateway.url))[1]["done_reason"] == "stop"


EMPTY: dict[str, list[bytes]] = {
    "nothing": [], "comments": [b": ping\n\n"], "role_only": [chunk({"role": "assistant"})],
    "choices_empty": [data({"choices": []})],
}


@pytest.mark.parametrize("pieces", EMPTY.values(), ids=EMPTY)
def test_a_stream_that_says_nothing_is_a_502(
        gateway: GatewayProcess, engine: RawEngine, pieces: list[bytes]) -> None:
    """An end without an end is no empty success."""
    engine.answer_with(stream("chunked", pieces))
    answer = chat(gateway.url)
    assert (answer.status, bool(ollama_error(answer))) == (502, True)


@pytest.mark.parametrize("status", [429, 503])
def test_come_back_later(gateway: GatewayProcess, engine: RawEngine, status: int) -> None:
    """The engine's wish to be left alone keeps its status and its time; it is asked once."""
    headers = [*JSON_TYPE, ("Retry-After", "30"), ("x-ratelimit-remaining-requests", "0"),
               ("X-Custom", "y")]
    engine.answer_with(reply(status, b'{"error":{"message":"not now"}}', headers))
    for streaming in (True, False):
        answer = chat(gateway.url, stream=streaming)
        assert (answer.status, ollama_error(answer)) == (status, "not now")
        assert answer.header("Retry-After") == "30"
    assert len(engine.requests) == 2


def test_the_next_chat_is_not_harmed(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Two on one connection: a stream that failed, then one that does not."""
    engine.answer_with([*body(ev("1")), reset], streamed(ev("2")))
    with RawClient(gateway.url) as client:
        said, _ = failure(client.request("POST", CHAT, JSON, BODY).whole())
        assert content(said) == "1"
        said, _ = success(client.request("POST", CHAT, JSON, BODY).whole())
        assert content(said) == "2"
