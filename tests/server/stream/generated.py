"""Random event streams, the same for the same seed, in random framings and pieces."""

from __future__ import annotations

import json
from random import Random

from tests.fakes.engine_steps import send
from tests.fakes.raw_engine import Exchange, Step
from tests.fakes.stream_steps import FRAMINGS, SSE, framed, head_for, stream
from tests.server.stream.apis import STREAMING, Api

_ALPHABET = "abc xyz 0123 äöü 北京 😀👩‍👩‍👧 \\ \" \t \u2028 \ufeff { } [ ] : data: \u0000 é"
_LINE_ENDS = ["\n", "\r\n", "\r"]
_NOISE = [": ping{0}{0}", ":{0}", ": x{0}", "event: message{0}", "id: 7{0}", "retry: 10{0}",
          "unknown{0}", "data{0}{0}", "{0}", "data: {{\"choices\":[]}}{0}{0}", ": 北{0}{0}"]


class Generated:
    """One stream: which API it is of, its bytes, and the script that sends it."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.api = random.choice(STREAMING)
        self.body = _body(random, self.api)
        framing = random.choice(FRAMINGS)
        pieces = _cut(random, self.body)
        self.script = _coarse(random, framing, pieces)


def _body(random: Random, api: Api) -> bytes:
    line_end = random.choice(_LINE_ENDS)
    parts = []
    for _ in range(random.randrange(12)):
        if random.random() < 0.3:
            parts.append(random.choice(_NOISE).format(line_end).encode())
        parts.append(_ended(api.event(_text(random)), line_end))
    end = _ended(api.end, line_end)
    if random.random() < 0.2:
        end = end.replace(b"data: ", b"data:")
    return b"".join(parts) + end


def _ended(event: bytes, line_end: str) -> bytes:
    return event.replace(b"\n", line_end.encode())


def _text(random: Random) -> str:
    size = random.choice([0, 1, 3, 20, 200, 2000])
    return json.dumps("".join(random.choices(_ALPHABET, k=size)))


def _cut(random: Random, body: bytes) -> list[bytes]:
    """Pieces that are cut anywhere; seldom many, so that a thousand streams take no minute."""
    count = random.choice([0, 1, 2, 5, 20])
    places = sorted(random.randrange(1, len(body)) for _ in range(count))
    bounds = [0, *dict.fromkeys(places), len(body)]
    return [body[a:b] for a, b in zip(bounds, bounds[1:])]


def _coarse(random: Random, framing: str, pieces: list[bytes]) -> list[Step]:
    """Piece by piece, or the same bytes in packets that mind no piece."""
    if random.random() < 0.5:
        return stream(framing, pieces)
    wire = b"".join(framed(framing, piece) for piece in pieces)
    wire = head_for(framing, sum(map(len, pieces)), SSE) + wire
    end = stream(framing, [])[-1]
    return [*(send(packet) for packet in _cut(random, wire)), end]


def by_seed(exchange: Exchange) -> None:
    """A script that answers with the stream whose seed stands in the request."""
    seed = json.loads(exchange.request.body)["seed"]
    for step in Generated(seed).script:
        step(exchange)
