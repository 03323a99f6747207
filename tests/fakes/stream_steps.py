"""Streams for the scripts of a RawEngine: events of the chat API, heads, and every framing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence

from tests.fakes.engine_steps import close, head, hold, send
from tests.fakes.raw_engine import Exchange, Step
from tests.fakes.wire import Headers

SSE: Headers = [("Content-Type", "text/event-stream")]
CHUNKED: Headers = [("Transfer-Encoding", "chunked")]
CLOSING: Headers = [("Connection", "close")]
FRAMINGS = ["chunked", "length", "close"]
DONE = b"data: [DONE]\n\n"


def data(value: object, name: str = "") -> bytes:
    """One event with this JSON value, and with a name where there is one."""
    line = b"event: " + name.encode() + b"\n" if name else b""
    return line + b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chunk(delta: dict[str, object], finish: str | None = None, index: int = 0) -> bytes:
    """One event of a chat completion."""
    return data({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                 "choices": [{"index": index, "delta": delta, "finish_reason": finish}]})


def ev(text: str) -> bytes:
    """One event that adds `text` to the answer."""
    return chunk({"content": text})


STOP = chunk({}, "stop")


def head_for(framing: str, length: int = 0, headers: Iterable[tuple[str, str]] = SSE) -> bytes:
    """The head of a 200 whose body is framed in this way."""
    fields = {"chunked": CHUNKED, "length": [("Content-Length", str(length))], "close": CLOSING}
    return head(200, [*headers, *fields[framing]])


def framed(framing: str, piece: bytes) -> bytes:
    """One piece of a body as it goes on the wire."""
    return b"%x\r\n%b\r\n" % (len(piece), piece) if framing == "chunked" and piece else piece


def end_of(framing: str) -> Step:
    """What ends a body that is framed in this way."""
    steps = {"chunked": send(b"0\r\n\r\n"), "length": send(b""), "close": close}
    return steps[framing]


def stream(framing: str, pieces: Sequence[bytes],
           headers: Iterable[tuple[str, str]] = SSE) -> list[Step]:
    """A whole body in these pieces, as fast as it goes."""
    opening = head_for(framing, sum(map(len, pieces)), headers)
    return [send(opening), *(send(framed(framing, piece)) for piece in pieces), end_of(framing)]


class Gates:
    """A stream that goes on one piece at a time, each only after the test has seen the last."""

    def __init__(self, framing: str, pieces: Sequence[bytes],
                 headers: Iterable[tuple[str, str]] = SSE) -> None:
        self.pieces = pieces
        self._gates = [threading.Event() for _ in pieces]
        self.script: list[Step] = [send(head_for(framing, sum(map(len, pieces)), headers))]
        for piece, gate in zip(pieces, self._gates):
            self.script += [send(framed(framing, piece)), hold(gate)]
        self.script.append(end_of(framing))

    def seen(self, number: int) -> None:
        """The piece of this number has arrived: send the next."""
        self._gates[number].set()


def endless(piece: bytes) -> Step:
    """Send chunks of this piece until the peer leaves."""
    framed_piece = framed("chunked", piece)

    def step(exchange: Exchange) -> None:
        while True:
            exchange.send(framed_piece)
    return step
