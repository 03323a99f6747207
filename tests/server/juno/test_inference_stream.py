"""POST /v1/inference/stream: one event for each piece of text, and exactly one end."""

from __future__ import annotations

import json
import threading

import pytest

from tests.fakes.engine_steps import JSON_TYPE, chunks, close, mark, reply, send, silence
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.stream_steps import (
    DONE, FRAMINGS, STOP, Gates, chunk, data, endless, ev, framed, head_for, stream,
)
from tests.server.calls import openai_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.juno.asking import (
    HELLO, STREAM, WHOLE, arriving, failure, send as send_request, success,
)
from tests.server.stream.apis import CHAT
from tests.server.stream.leaving import LEAVING, Leave, let_go
from tests.server.stream.stream_faults import FAULTS, Fault

SOON = 1.0  # seconds within which an engine is let go; nothing else here would do it before
LENGTH = chunk({}, "length")


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize(("end", "reason"), [(STOP, "stop"), (LENGTH, "length")])
def test_a_stream_is_told(gateway: GatewayProcess, engine: RawEngine, framing: str, end: bytes,
                          reason: str) -> None:
    """However the engine frames it."""
    engine.answer_with(stream(framing, [chunk({"role": "assistant", "content": ""}),
                                        *map(ev, ["北", " 京", "\n\n", "😀"]), end, DONE]))
    assert success(post(gateway.url, STREAM, HELLO)) == ("北 京\n\n😀", reason)
    [request] = engine.requests
    assert (request.path, json.loads(request.body)["stream"]) == ("/v1/chat/completions", True)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_pieces_may_be_cut_anywhere(gateway: GatewayProcess, engine: RawEngine, size: int) -> None:
    """In the midst of a character, a line, an event."""
    body = b"".join([b": ping\r\n\r\n", ev("北京").replace(b"\n", b"\r\n"), ev("é"), STOP, DONE])
    engine.answer_with(stream("chunked", [body[at:at + size] for at in range(0, len(body), size)]))
    assert success(post(gateway.url, STREAM, HELLO)) == ("北京é", "stop")


def test_every_event_arrives_at_once(patient: GatewayProcess, engine: RawEngine) -> None:
    """The engine sends the next only after the last has arrived."""
    gates = Gates("chunked", [ev("1"), ev("2"), STOP])
    engine.answer_with(gates.script)
    with RawClient(patient.url) as client:
        send_request(client)
        found = arriving(client.answer())
        for number, token in enumerate(("1", "2", "")):
            event = next(found)
            assert (event["token"], event["isComplete"]) == (token, not token)
            gates.seen(number)


def test_the_end_is_not_waited_for(patient: GatewayProcess, engine: RawEngine) -> None:
    """An engine that keeps its connection open behind the end holds nobody up."""
    engine.answer_with([send(head_for("chunked")), chunks(ev("a"), STOP), silence], reply())
    assert success(post(patient.url, STREAM, HELLO)) == ("a", "stop")
    assert engine.connections[0].peer_closed.wait(SOON)
    assert post(patient.url, WHOLE, HELLO).json()["text"] == "hi"


@pytest.mark.parametrize("end", [DONE, chunk({}, "eos"), b""], ids=["done", "unknown", "none"])
def test_an_end_without_a_known_reason_is_an_error(
        gateway: GatewayProcess, engine: RawEngine, end: bytes) -> None:
    """Nobody can say whether the answer is whole."""
    engine.answer_with(stream("chunked", [ev("a"), end]))
    text, error = failure(post(gateway.url, STREAM, HELLO))
    assert (text, error["code"]) == ("a", "upstream_error")


def test_an_engine_that_will_not_stream_is_told_as_one(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """A whole completion is one piece of text."""
    assert success(post(gateway.url, STREAM, HELLO)) == ("hi", "stop")


def ask_and_see(url: str, fault: Fault, engine: RawEngine) -> RawAnswer:
    """A stream whose engine fails once two events have been seen; the answer is whole."""
    seen = threading.Event()
    engine.answer_with(fault.script(CHAT, 2, seen))
    with RawClient(url) as client:
        send_request(client)
        answer = client.answer()
        found = arriving(answer)
        assert [next(found)["token"] for _ in range(2)] == ["1", "2"]
        seen.set()
        return answer.whole()


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_broken_stream_ends_with_one_error(
        gateway: GatewayProcess, engine: RawEngine, fault: Fault) -> None:
    """What came before stays; the body ends cleanly."""
    text, error = failure(ask_and_see(gateway.url, fault, engine))
    assert text.startswith("12")
    assert (error["type"], error["code"]) == ("server_error", "upstream_error")
    assert "<" not in error["message"] and "Traceback" not in error["message"]


def test_a_silent_engine_is_given_up(gateway: GatewayProcess, engine: RawEngine) -> None:
    """The error has its own code, in the stream as before it."""
    engine.answer_with([send(head_for("chunked")), chunks(ev("a")), silence],
                       [send(head_for("chunked")), chunks(b": ping\n\n"), silence])
    text, error = failure(post(gateway.url, STREAM, HELLO))
    assert (text, error["code"]) == ("a", "engine_timeout")
    answer = post(gateway.url, STREAM, HELLO)
    assert (answer.status, openai_error(answer)["code"]) == (504, "engine_timeout")


def test_what_the_engine_says_is_wrong_is_told(
        patient: GatewayProcess, engine: RawEngine) -> None:
    """In its own words, once; as the first event it is a 502. The engine is let go at once."""
    boom = data({"error": {"code": 500, "message": "boom", "type": "server_error"}})
    engine.answer_with([send(head_for("chunked")), chunks(ev("a"), boom, STOP), silence],
                       [send(head_for("chunked")), chunks(boom), silence])
    text, error = failure(post(patient.url, STREAM, HELLO))
    assert (text, error["message"]) == ("a", "boom")
    answer = post(patient.url, STREAM, HELLO)
    assert (answer.status, openai_error(answer)["message"]) == (502, "boom")
    assert all(connection.peer_closed.wait(SOON) for connection in engine.connections)


@pytest.mark.parametrize("pieces", [
    [], [b": ping\n\n"], [chunk({"role": "assistant"})], [data({"choices": []})]])
def test_a_stream_that_says_nothing_is_a_502(
        gateway: GatewayProcess, engine: RawEngine, pieces: list[bytes]) -> None:
    """An end without an end is no empty success."""
    engine.answer_with(stream("chunked", pieces))
    answer = post(gateway.url, STREAM, HELLO)
    assert (answer.status, openai_error(answer)["code"]) == (502, "upstream_error")


BEGUN: dict[str, tuple[str, list[Step], int]] = {
    "before_the_head": (STREAM, [], 0),
    "before_the_first_event": (STREAM, [send(head_for("chunked")), chunks(b": ping\n\n")], 0),
    "mid_stream": (STREAM, [send(head_for("chunked")), chunks(ev("1") + ev("2"))], 2),
    "in_an_event": (STREAM, [send(head_for("chunked")), chunks(ev("1") + ev("2")[:9])], 1),
    "whole_before_the_head": (WHOLE, [], 0),
    "whole_in_the_body": (
        WHOLE, [send(head_for("length", 99, JSON_TYPE) + b"{")], 0),
}


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
@pytest.mark.parametrize(("path", "steps", "events"), BEGUN.values(), ids=BEGUN)
def test_a_client_that_leaves_frees_the_engine(
        patient: GatewayProcess, engine: RawEngine, path: str, steps: list[Step], events: int,
        leave: Leave) -> None:
    """However and whenever it does, though the engine is silent."""
    here = threading.Event()
    engine.answer_with([*steps, mark(here), silence])
    with RawClient(patient.url) as client:
        send_request(client, path)
        assert here.wait(10)
        if events:
            found = arriving(client.answer())
            assert all(next(found)["token"] for _ in range(events))
        assert not engine.connections[0].peer_closed.is_set()
        leave(client)
        assert engine.connections[0].peer_closed.wait(SOON)


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
def test_an_engine_in_full_flow_is_let_go(
        patient: GatewayProcess, engine: RawEngine, leave: Leave) -> None:
    """One that sends without a pause cannot send on."""
    engine.answer_with([send(head_for("chunked")), endless(ev("x"))])
    with RawClient(patient.url) as client:
        send_request(client)
        next(arriving(client.answer()))
        leave(client)
        wait_until(lambda: let_go(engine.connections[0]), "the engine to be let go", SOON)


def test_no_place_is_lost(gateway: GatewayProcess, engine: RawEngine) -> None:
    """More calls than there are places, ended in every way."""
    ways: list[list[Step]] = [
        stream("chunked", [ev("a"), STOP, DONE]), [send(head_for("chunked")), close],
        [send(head_for("chunked")), send(framed("chunked", ev("a"))), close],
        [reply(400, b"{}")], [close], [reply(200, b"{}")]]
    engine.answer_with(*(way for _ in range(8) for way in ways), [reply()])
    for _ in range(len(ways) * 8):
        with RawClient(gateway.url) as client:
            send_request(client)
            client.answer().whole()
    assert post(gateway.url, WHOLE, HELLO).status == 200
