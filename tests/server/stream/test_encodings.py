"""Engines that pack their answers: what a client unpacks by its own headers is the original."""

from __future__ import annotations

import gzip
import threading
import zlib
from collections.abc import Sequence
from typing import Protocol

import pytest

from tests.fakes.engine_steps import COMPLETION, JSON_TYPE, close, hold, reply, send
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.sse import read_events
from tests.fakes.stream_steps import DONE, FRAMINGS, SSE, STOP, Gates, ev, framed, head_for, stream
from tests.fakes.wire import Headers
from tests.server.calls import JSON, post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT, EVERY, Api, named
from tests.server.stream.asking import ask
from tests.server.stream.outcome import error_in

EVENTS = [ev("北"), ev("2"), ev("3" * 5000), STOP, DONE]
GZIP, DEFLATE, RAW_DEFLATE = 31, 15, -15  # zlib's names for the three formats: window bits
PACKERS = {"gzip": GZIP, "x-gzip": GZIP, "deflate": DEFLATE, "deflate_without_head": RAW_DEFLATE}
CLIENTS: dict[str, Headers] = {
    "packing_client": [*JSON, ("Accept-Encoding", "gzip")],
    "eager_client": [*JSON, ("Accept-Encoding", "gzip, deflate, br, zstd")],
    "plain_client": [*JSON], "identity_client": [*JSON, ("Accept-Encoding", "identity")]}
each_client = pytest.mark.parametrize("accepted", CLIENTS.values(), ids=CLIENTS)
each_packer = pytest.mark.parametrize("name", PACKERS)


class Unpacker(Protocol):
    """Takes a body apart as it arrives."""

    def decompress(self, data: bytes, /) -> bytes:
        """What this piece holds."""


class _Plain:
    def decompress(self, data: bytes, /) -> bytes:
        """The same."""
        return data


def unpacker(answer: RawAnswer) -> Unpacker:
    """What a client takes for this answer; raises AssertionError for what it did not ask for."""
    encoding = answer.header("Content-Encoding") or "identity"
    assert encoding in ("gzip", "x-gzip", "deflate", "identity"), encoding
    if encoding == "identity":
        return _Plain()
    return zlib.decompressobj(DEFLATE if encoding == "deflate" else GZIP)


def packed(bits: int, pieces: Sequence[bytes]) -> list[bytes]:
    """Each piece in a block of its own, flushed so that it can be unpacked at once."""
    packer = zlib.compressobj(wbits=bits)
    blocks = [packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]
    blocks[-1] += packer.flush()
    return blocks


def encoding_of(name: str) -> Headers:
    """The header field for a packer of this name."""
    return [("Content-Encoding", name.partition("_")[0])]


@each_client
@each_packer
@pytest.mark.parametrize("api", EVERY, ids=named)
def test_a_whole_answer_is_readable(patient: GatewayProcess, engine: RawEngine, api: Api,
                                    name: str, accepted: Headers) -> None:
    """Unpacked, or packed and said to be; with a length that is right."""
    body = b"".join(packed(PACKERS[name], [api.whole]))
    engine.answer_with(reply(200, body, [*JSON_TYPE, *encoding_of(name)]))
    answer = post(patient.url, api.path, api.body(), accepted)
    assert answer.status == 200 and not answer.cut
    assert unpacker(answer).decompress(answer.body) == api.whole
    assert answer.header("Content-Length") in (None, str(len(answer.body)))


@each_client
@each_packer
@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_packed_stream_arrives_event_by_event(
        patient: GatewayProcess, engine: RawEngine, name: str, framing: str,
        accepted: Headers) -> None:
    """Each flushed block is readable before the engine sends the next one."""
    gates = Gates(framing, packed(PACKERS[name], EVENTS), [*SSE, *encoding_of(name)])
    engine.answer_with(gates.script)
    with RawClient(patient.url) as client:
        answer = ask(client, headers=accepted)
        unpack = unpacker(answer).decompress
        for number, event in enumerate(EVENTS):
            got = b""
            while len(got) < len(event) and (piece := next(answer.pieces(), b"")):
                got += unpack(piece)
            assert got == event
            gates.seen(number)
        assert unpack(b"".join(answer.pieces())) == b"" and not answer.cut
    assert answer.header("Content-Length") in (None, str(len(answer.body)))


def test_a_packed_stream_in_single_bytes(patient: GatewayProcess, engine: RawEngine) -> None:
    """Blocks may be cut anywhere, the head of the format too."""
    blocks = b"".join(packed(GZIP, EVENTS))
    pieces = [blocks[at:at + 1] for at in range(len(blocks))]
    engine.answer_with(stream("chunked", pieces, [*SSE, *encoding_of("gzip")]))
    answer = post(patient.url, CHAT.path, CHAT.body(stream=True))
    assert unpacker(answer).decompress(answer.body) == b"".join(EVENTS)


@each_client
def test_the_engine_is_not_asked_to_pack(
        patient: GatewayProcess, engine: RawEngine, accepted: Headers) -> None:
    """Tokens are small and local: whatever the client takes, the engine is to send plain bytes."""
    assert post(patient.url, CHAT.path, CHAT.body(stream=True), accepted).body == COMPLETION
    assert engine.requests[0].all("Accept-Encoding") == ["identity"]


def test_identity_is_no_packing(patient: GatewayProcess, engine: RawEngine) -> None:
    """An engine that says so changes nothing."""
    engine.answer_with(stream("chunked", EVENTS, [*SSE, ("Content-Encoding", "identity")]),
                       reply(200, COMPLETION, [*JSON_TYPE, ("Content-Encoding", "identity")]))
    for body in (b"".join(EVENTS), COMPLETION):
        answer = post(patient.url, CHAT.path, CHAT.body())
        assert answer.body == body and answer.header("Content-Encoding") in (None, "identity")


@pytest.mark.parametrize("encoding", ["br", "x-own", "gzip, br"])
@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "whole"])
def test_an_unknown_packing_is_not_hidden(patient: GatewayProcess, engine: RawEngine,
                                          encoding: str, streaming: bool) -> None:
    """What nobody here can unpack is passed on under its name, or refused; never as plain bytes."""
    body = b"\x1b\x2f\x00\xf8\x8d\x94\x6e\x02" * 4
    head = [*(SSE if streaming else JSON_TYPE), ("Content-Encoding", encoding)]
    engine.answer_with(reply(200, body, head))
    answer = post(patient.url, CHAT.path, CHAT.body(stream=streaming))
    if answer.status == 502:
        return
    assert (answer.status, answer.body) == (200, body)
    assert answer.header("Content-Encoding") == encoding


DAMAGED = {"garbage": b"\xff" * 50, "garbage_later": packed(GZIP, EVENTS[:2])[0] + b"\xff" * 90}


@pytest.mark.parametrize("body", DAMAGED.values(), ids=DAMAGED)
def test_damage_in_a_whole_answer_is_a_502(
        patient: GatewayProcess, engine: RawEngine, body: bytes) -> None:
    """What cannot be unpacked is no answer."""
    engine.answer_with(reply(200, body, [*JSON_TYPE, *encoding_of("gzip")]), reply())
    assert post(patient.url, CHAT.path, CHAT.body()).status == 502
    assert post(patient.url, CHAT.path, CHAT.body()).status == 200


def test_half_a_packed_answer_is_a_502(patient: GatewayProcess, engine: RawEngine) -> None:
    """The framing is whole, but what is packed in it is not."""
    whole = gzip.compress(COMPLETION * 50)
    engine.answer_with(reply(200, whole[:len(whole) // 2], [*JSON_TYPE, *encoding_of("gzip")]))
    assert post(patient.url, CHAT.path, CHAT.body()).status == 502


@pytest.mark.parametrize("rest", [b"32\r\n" + b"\xff" * 50 + b"\r\n0\r\n\r\n", b"0\r\n\r\n", b""],
                         ids=["garbage", "clean_end", "close"])
def test_damage_in_a_stream_is_one_error(
        patient: GatewayProcess, engine: RawEngine, rest: bytes) -> None:
    """After the events that could be unpacked comes one more, the error."""
    seen = threading.Event()
    block = packed(GZIP, EVENTS[:2] + [b": "])[0] + packed(GZIP, EVENTS[:2] + [b": "])[1]
    engine.answer_with([send(head_for("chunked", 0, [*SSE, *encoding_of("gzip")])),
                        send(framed("chunked", block)), hold(seen), send(rest), close])
    with RawClient(patient.url, timeout=5) as client:
        answer = ask(client)
        unpack = unpacker(answer).decompress
        got = b""
        while len(got) < len(EVENTS[0] + EVENTS[1]):
            got += unpack(next(answer.pieces()))
        seen.set()
        got += b"".join(map(unpack, answer.pieces()))
    events, left = read_events(got)
    assert not answer.cut and not left and len(events) == 3
    assert error_in(CHAT, events[2])
