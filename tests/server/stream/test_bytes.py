"""What the client reads is what the engine sent, byte for byte, in whatever framing it came."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fakes.engine_steps import send
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.stream_steps import (
    CHUNKED, DONE, FRAMINGS, SSE, STOP, chunk, data, ev, head_for, stream,
)
from tests.server.calls import JSON, post
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.apis import CHAT, STREAMING, Api, named
from tests.server.stream.asking import ask
from tests.server.stream.generated import Generated, by_seed

END = STOP + DONE
USAGE = data({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})
EVENT = ev("北😀")
# Streams as engines send them, in pieces: each has to come out as it went in.
STREAMS: dict[str, list[bytes]] = {
    "characters_cut_in_two": [EVENT[:EVENT.index(b"\xe5\x8c\x97") + 1],
                              EVENT[EVENT.index(b"\xe5\x8c\x97") + 1:EVENT.index(b"\x98\x80")],
                              EVENT[EVENT.index(b"\x98\x80"):], END],
    "comments_and_fields": [
        b": ping\n\n", ev("a"), b":\n: x\nevent: message\nid: 7\nretry: 10\n",
        ev("b").replace(b"data: ", b"data:"), END],
    "no_done": [ev("a"), STOP],
    "done_alone": [DONE],
    "odd_chunks": [data({"choices": []}), ev("a"), data({"id": "c"}), chunk({}),
                   chunk({"content": None}), STOP, USAGE, DONE],
    "carriage_returns": [(ev("a") + END).replace(b"\n", b"\r")],
    "both_line_ends": [(ev("a") + END).replace(b"\n", b"\r\n")],
    "line_ends_cut_in_two": [ev("a")[:-1] + b"\r", b"\n\r", b"\n", END],
    "mixed_line_ends": [ev("a")[:-2] + b"\r\n\r", ev("b")[:-2] + b"\n\r\n", END],
    "data_over_several_lines": [b'data: {"choices":\ndata: [],\ndata:  "x": 1}\n\n', END],
    "byte_order_mark": [b"\xef\xbb\xbf", ev("a"), END],
    "no_character": [b": \xff\xfe\x00\n\n", ev("a"), END],
    "after_the_end": [ev("a"), END, b": bye\n\n", b"\n\n"],
    "end_without_empty_line": [ev("a"), STOP, b"data: [DONE]\n"],
    "end_without_line_end": [ev("a"), STOP, b"data: [DONE]"],
    "empty_lines": [b"\n\n\n", ev("a"), b"\r\n\r\n", END],
    "progress": [data({"choices": [], "prompt_progress": {"total": 9, "processed": 4}}), END],
    "finish_with_content": [chunk({"content": "a"}, "length")],
    "tools": [chunk({"tool_calls": [{"index": 0, "id": "t", "function": {
        "name": "f", "arguments": '{"a":"}\\n'}}]}), chunk({}, "tool_calls"), DONE],
}


def ask_for(gateway: GatewayProcess, api: Api = CHAT) -> RawAnswer:
    """One streaming call on a connection of its own, its answer whole."""
    with RawClient(gateway.url) as client:
        return ask(client, api).whole()


def is_relayed(answer: RawAnswer, pieces: Iterable[bytes]) -> None:
    """The answer is a stream and has exactly these bytes."""
    assert (answer.status, answer.header("Content-Type")) == (200, "text/event-stream")
    assert answer.body == b"".join(pieces)
    assert not answer.cut


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("pieces", STREAMS.values(), ids=STREAMS)
def test_a_stream_is_relayed_as_it_is(gateway: GatewayProcess, engine: RawEngine,
                                      pieces: list[bytes], framing: str) -> None:
    """Nothing is added, taken away or put in other words, whatever an event looks like."""
    engine.answer_with(stream(framing, pieces))
    is_relayed(ask_for(gateway), pieces)


@pytest.mark.parametrize("api", STREAMING, ids=named)
@pytest.mark.parametrize("framing", FRAMINGS)
def test_every_api_is_relayed(gateway: GatewayProcess, engine: RawEngine, api: Api,
                              framing: str) -> None:
    """What holds for chats holds for every endpoint that streams."""
    pieces = [*api.events(3), api.end]
    engine.answer_with(stream(framing, pieces))
    is_relayed(ask_for(gateway, api), pieces)


@pytest.mark.parametrize("path", ["/v1/rerank", "/v1/audio/speech", "/v1/anything", "/infill",
                                  "/chat/completions", "/completions", "/responses"])
def test_a_stream_of_any_path_is_relayed(
        gateway: GatewayProcess, engine: RawEngine, path: str) -> None:
    """Paths whose streams the gateway knows nothing of, and other spellings of those it knows."""
    ends = {"/infill": b'data: {"stop":true}\n\n',
            "/responses": b'data: {"type":"response.completed"}\n\n'}
    pieces = [ev("a"), b": odd\n\ndata: x\n\n", ends.get(path, STOP)]
    engine.answer_with(stream("chunked", pieces))
    is_relayed(post(gateway.url, path, {"model": "m", "input": "x", "messages": [
        {"role": "user", "content": "hi"}], "stream": True}), pieces)


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_a_cut_at_every_byte_is_harmless(gateway: GatewayProcess, engine: RawEngine,
                                         framing: str) -> None:
    """Wherever a stream is cut into two pieces, the two come out as one."""
    body = data({"choices": [{"delta": {"content": "北😀"}, "finish_reason": "stop"}]}) + DONE
    scripts = [stream(framing, [body[:cut], body[cut:]]) for cut in range(1, len(body))]
    engine.answer_with(*scripts)
    for _ in scripts:
        is_relayed(ask_for(gateway), [body])


@pytest.mark.parametrize("framing", FRAMINGS)
def test_an_answer_that_comes_byte_by_byte(
        gateway: GatewayProcess, engine: RawEngine, framing: str) -> None:
    """A packet for every byte, those of the head and of the chunk sizes too."""
    body = EVENT + END
    wire = head_for(framing, len(body))
    wire += b"%x\r\n%b\r\n" % (len(body), body) if framing == "chunked" else body
    engine.answer_with([*(send(wire[at:at + 1]) for at in range(len(wire))),
                        stream(framing, [])[-1]])
    is_relayed(ask_for(gateway), [body])


def test_chunk_extensions_and_trailers_are_not_content(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """What the framing holds beside the body stays with the engine's connection."""
    body = ev("a") + END
    engine.answer_with([send(head_for("chunked")), send(b"%X ;x=y\r\n" % len(body) + body),
                        send(b"\r\n000\r\nX-Trailer: 1\r\n\r\n")])
    answer = ask_for(gateway)
    is_relayed(answer, [body])
    assert not answer.all("X-Trailer")


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_line_of_megabytes(gateway: GatewayProcess, engine: RawEngine, framing: str) -> None:
    """One event of 8 MB, in pieces of 16 KB, costs time in proportion to its length."""
    line = ev("x😀" * 1_600_000)
    pieces = [line[at:at + 16384] for at in range(0, len(line), 16384)]
    engine.answer_with(stream(framing, [*pieces, END]))
    is_relayed(ask_for(gateway), [line, END])


def test_a_thousand_streams_are_the_same(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Random events in random framings, many at a time: each client gets its own, to the bit."""
    engine.answer_with(by_seed)

    def digests(seed: int) -> tuple[str, str]:
        made = Generated(seed)
        answer = post(gateway.url, made.api.path, made.api.body(stream=True, seed=seed))
        assert answer.status == 200 and not answer.cut
        return hashlib.sha256(made.body).hexdigest(), hashlib.sha256(answer.body).hexdigest()
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(digests, range(1000)))
    assert [seed for seed, (sent, got) in enumerate(found) if sent != got] == []


BUFFERING = ["X-Accel-Buffering", "x-accel-buffering"]


@pytest.mark.parametrize("more", [
    [], [("X-Accel-Buffering", "no")], [("x-accel-buffering", "yes")],
    [("X-Accel-Buffering", "no"), ("X-Accel-Buffering", "yes")],
    [("Cache-Control", "no-store")], [("Cache-Control", "max-age=60"), ("cache-control", "public")],
], ids=["none", "no", "yes", "both", "no_store", "cacheable"])
@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_stream_says_that_it_must_not_be_held_back(
        gateway: GatewayProcess, engine: RawEngine, more: list[tuple[str, str]],
        framing: str) -> None:
    """No cache and no proxy keeps it; each of the two fields is there once, with one value."""
    engine.answer_with(stream(framing, [END], [*SSE, *more]))
    answer = ask_for(gateway)
    assert answer.all("X-Accel-Buffering") == ["no"]
    assert answer.all("Cache-Control") == ["no-cache"]
    assert answer.all("Transfer-Encoding") in (["chunked"], []) and answer.body == END


def test_the_type_of_a_stream_may_have_parameters(
        gateway: GatewayProcess, engine: RawEngine) -> None:
    """`text/event-stream; charset=utf-8` is a stream, and keeps its parameter."""
    typed = [("Content-Type", "text/event-stream; charset=utf-8"), *CHUNKED]
    engine.answer_with(stream("length", [END], typed[:1]))
    answer = post(gateway.url, CHAT.path, CHAT.body(stream=True), JSON)
    assert (answer.header("Content-Type"), answer.body) == (typed[0][1], END)
    assert answer.all("X-Accel-Buffering") == ["no"]
