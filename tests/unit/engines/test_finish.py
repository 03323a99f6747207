"""A stream that has said that it is over: its connection serves the next call, if it can."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from app.api.payload import JsonBody
from app.call import Call, Reply
from app.engines.client import EngineClient
from app.engines.failures import Limits
from app.engines.hangup import Departure
from app.errors import GatewayError
from tests.fakes.engine_steps import chunks, close, hold, reset, send, silence
from tests.fakes.raw_engine import RawEngine, Step
from tests.fakes.stream_steps import DONE, endless, ev, framed, head_for, stream

CALL = Call("/v1/chat/completions", "m", JsonBody(b'{"model":"m"}', {"model": "m"}), "id")
LAST = b"0\r\n\r\n"


@pytest.fixture
def engine() -> Iterator[RawEngine]:
    """An engine that answers as the test says."""
    with RawEngine(close) as engine:
        yield engine


@pytest.fixture
def long_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time enough for what is on its way, however busy the machine is."""
    monkeypatch.setattr("app.engines.client._MOMENT", 20.0)


def client(engine: RawEngine) -> EngineClient:
    """A client that waits longer than any test."""
    return EngineClient(engine.url, None, Limits(connect=20.0, read=600.0), connections=4)


def body(framing: str, *rest: bytes) -> bytes:
    """A head, one event and the mark of the end, with what comes in the same moment."""
    size = len(DONE) + len(ev("a"))
    pieces = b"".join(framed(framing, piece) for piece in (ev("a"), DONE))
    return head_for(framing, size) + pieces + b"".join(rest)


def taken_to_the_mark(reply: Reply) -> None:
    """Take the pieces up to the mark of the end, and not one more."""
    seen = b""
    for piece in reply.pieces:
        seen += piece
        if seen.endswith(DONE):
            return
    raise AssertionError(seen)


def connections(engine: RawEngine, first: list[Step], departure: Departure | None = None
                ) -> list[int]:
    """On which connections two calls come, the first ended at its mark."""
    engine.answer_with(first, stream("chunked", [DONE]))
    made = client(engine)
    reply = made.send(CALL, departure or Departure(None))
    taken_to_the_mark(reply)
    reply.finish()
    reply.close()
    made.send(CALL, Departure(None)).close()
    return [request.connection for request in engine.requests]


@pytest.mark.parametrize("first", [
    [send(body("chunked", LAST))], [send(body("chunked")), send(LAST)],
    [send(body("chunked")), send(b"0\r\n"), send(b"\r\n")],
    [send(body("chunked")), chunks(b"\n", b": bye\n\n", b"")],
    [send(body("length"))],
], ids=["at_once", "behind_it", "in_two", "with_more", "by_length"])
def test_the_connection_serves_the_next_call(
        engine: RawEngine, first: list[Step], long_moment: None) -> None:
    """Where the end of the body is there, or on its way."""
    assert connections(engine, first) == [1, 1]


@pytest.mark.parametrize("first", [
    [send(body("chunked")), silence], [send(body("chunked")), send(b"0\r\n"), silence],
    [send(body("close")), silence], [send(body("close")), close], [send(body("chunked")), reset],
    [send(body("chunked")), close], [send(body("chunked")), send(b"no size\r\n"), silence],
    [send(body("chunked")), endless(ev("more"))],
], ids=["never", "half", "unframed", "unframed_closed", "reset", "closed", "broken", "endless"])
def test_an_end_that_does_not_come_is_not_waited_for(
        engine: RawEngine, first: list[Step]) -> None:
    """The connection is closed, and the next call gets one of its own."""
    assert connections(engine, first) == [1, 2]


def test_a_client_that_has_left(engine: RawEngine) -> None:
    """Takes its connection with it."""
    departure = Departure(None)
    engine.answer_with([send(body("chunked")), silence])
    reply = client(engine).send(CALL, departure)
    taken_to_the_mark(reply)
    departure.happen()
    reply.finish()
    reply.close()
    assert engine.connections[0].peer_closed.wait(20)


def test_a_reply_that_broke_off_has_no_end(engine: RawEngine) -> None:
    """Finishing it is harmless, before it is closed and behind."""
    engine.answer_with([send(body("chunked")), reset])
    reply = client(engine).send(CALL, Departure(None))
    with pytest.raises(GatewayError):
        list(reply.pieces)
    reply.finish()
    reply.close()
    reply.finish()


def test_a_whole_reply_is_finished(engine: RawEngine) -> None:
    """There is nothing left of it to take."""
    Reply.whole(200, [], b"{}").finish()
    engine.answer_with(stream("chunked", [DONE]))
    made = client(engine)
    for _ in range(3):
        reply = made.send(CALL, Departure(None))
        assert reply.body == DONE
        reply.finish()
        reply.close()
    assert [request.connection for request in engine.requests] == [1] * 3


def test_the_next_call_has_its_own_limit(engine: RawEngine) -> None:
    """Not what was left of the moment that the end of the body was given."""
    gate = threading.Event()
    engine.answer_with([send(body("chunked", LAST))], [hold(gate), *stream("chunked", [DONE])])
    made = client(engine)
    reply = made.send(CALL, Departure(None))
    taken_to_the_mark(reply)
    reply.finish()
    reply.close()
    threading.Timer(0.3, gate.set).start()
    assert made.send(CALL, Departure(None)).body == DONE
    assert [request.connection for request in engine.requests] == [1, 1]
