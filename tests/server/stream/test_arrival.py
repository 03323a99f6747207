"""Every piece of a stream reaches the client before the engine sends the next one."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Event

import pytest

from tests.fakes.engine_steps import hold, send
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import DONE, FRAMINGS, STOP, Gates, ev, head_for
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT, STREAMING, Api, named
from tests.server.stream.asking import HTTP_10, HTTP_11, ask, read_up_to

EMOJI = ev("😀")
HALF = EMOJI.index(b"\xf0\x9f\x98\x80") + 2
PIECES = [ev("1"), ev("2"), EMOJI[:HALF], EMOJI[HALF:], b": wait\n", b"\n", ev("3")[:-1], b"\n",
          STOP, DONE]


def arrives_piece_by_piece(answer: RawAnswer, gates: Gates) -> None:
    """The engine waits after each piece until exactly that piece is here."""
    for number, piece in enumerate(gates.pieces):
        assert read_up_to(answer, len(piece)) == piece
        gates.seen(number)
    assert answer.body == b"".join(gates.pieces) and not answer.cut


@pytest.mark.parametrize("version", [HTTP_11, HTTP_10])
@pytest.mark.parametrize("framing", FRAMINGS)
def test_pieces_arrive_as_they_are_sent(patient: GatewayProcess, engine: RawEngine, framing: str,
                                        version: str) -> None:
    """Half events and half characters too, for clients of both versions of HTTP."""
    gates = Gates(framing, PIECES)
    engine.answer_with(gates.script)
    with RawClient(patient.url) as client:
        arrives_piece_by_piece(ask(client, version=version), gates)


@pytest.mark.parametrize("api", STREAMING, ids=named)
def test_pieces_of_every_api_arrive(
        patient: GatewayProcess, engine: RawEngine, api: Api) -> None:
    """No endpoint holds a token back."""
    gates = Gates("chunked", [*api.events(4), api.end])
    engine.answer_with(gates.script)
    with RawClient(patient.url) as client:
        arrives_piece_by_piece(ask(client, api), gates)


def test_half_a_chunk_arrives(patient: GatewayProcess, engine: RawEngine) -> None:
    """A chunk of the engine whose end is still to come is not waited for."""
    body = ev("1") + ev("2") + STOP + DONE
    seen, cut = Event(), len(ev("1")) + 20
    engine.answer_with([
        send(head_for("chunked") + b"%x\r\n" % len(body) + body[:cut]), hold(seen),
        send(body[cut:] + b"\r\n0\r\n\r\n")])
    with RawClient(patient.url) as client:
        answer = ask(client)
        assert read_up_to(answer, cut) == body[:cut]
        seen.set()
        assert answer.body == body


@pytest.mark.parametrize("framing", ["chunked", "length"])
def test_a_stream_is_over_when_its_body_is(patient: GatewayProcess, engine: RawEngine,
                                           framing: str) -> None:
    """An engine that keeps its connection open after the last byte keeps nobody waiting."""
    left = Event()
    gates = Gates(framing, [ev("1") + STOP + DONE])
    gates.seen(0)
    engine.answer_with([*gates.script, hold(left)])
    with RawClient(patient.url) as client:
        assert ask(client).body == gates.pieces[0]
        assert not engine.connections[0].peer_closed.is_set()
    left.set()


def test_a_connection_serves_one_stream_after_another(
        patient: GatewayProcess, engine: RawEngine) -> None:
    """Client's and engine's connections are kept from one whole stream to the next."""
    gates = [Gates("chunked", [ev(str(number)), STOP, DONE]) for number in range(5)]
    engine.answer_with(*(gate.script for gate in gates))
    with RawClient(patient.url) as client:
        for gate in gates:
            arrives_piece_by_piece(ask(client, CHAT), gate)
    assert {request.connection for request in engine.requests} == {1}


def test_many_streams_do_not_mix(patient: GatewayProcess, engine: RawEngine) -> None:
    """Streams that run at the same time each get their own pieces, in order."""
    gates = [Gates("chunked", [*(ev(f"{number}-{step}") for step in range(3)), DONE])
             for number in range(20)]
    engine.answer_with(*(gate.script for gate in gates))
    with ExitStack() as stack:
        answers = [ask(stack.enter_context(RawClient(patient.url))) for _ in gates]
        for step in range(len(gates[0].pieces)):
            for answer, gate in zip(answers, gates):
                assert read_up_to(answer, len(gate.pieces[step])) == gate.pieces[step]
            for gate in gates:
                gate.seen(step)
        assert not any(answer.whole().cut for answer in answers)
