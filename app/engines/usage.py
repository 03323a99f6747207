"""How many tokens an engine's answer tells of, found in its bytes without parsing them.

The names are OpenAI's (``usage`` of chats, completions, embeddings and responses), Anthropic's
(``usage`` of messages) and llama-server's (``timings``). Where the text of an answer quotes one of
them, the quotes around it are escaped.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from app.call import Reply
from app.record import Record

_EDGE = 4096  # bytes at each end of an answer that are searched; between them are only its words
_WINDOW = 400  # bytes; no engine's counts are longer
_PIECES = 4  # at the end of a stream: the counts, and the marks of its end
_COUNT = re.compile(
    rb'"(prompt_tokens|input_tokens|completion_tokens|output_tokens|prompt_n|cache_n|predicted_n)'
    rb'"\s*:\s*(\d{1,12})(?![\d.])'
)

Counts = tuple[int | None, int | None]


def counts(parts: Sequence[bytes]) -> Counts:
    """The tokens of prompt and completion that the parts of an answer tell of, the last word first.

    None stands for what is not told.
    """
    found = _found(parts, b'"usage"')
    if found:
        return (found.get(b"prompt_tokens", found.get(b"input_tokens")),
                found.get(b"completion_tokens", found.get(b"output_tokens")))
    found = _found(parts, b'"timings"')
    if b"prompt_n" not in found:
        return None, None
    # What the cache spared is counted apart.
    return found[b"prompt_n"] + found.get(b"cache_n", 0), found.get(b"predicted_n")


def _found(parts: Sequence[bytes], place: bytes) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for part in parts:
        at = part.rfind(place)
        if at >= 0:
            for name, number in _COUNT.findall(part, at, at + _WINDOW):
                found[name] = int(number)
    return found


def edges(answer: bytes) -> tuple[bytes, ...]:
    """The parts of a whole answer in which its counts can stand."""
    if len(answer) <= 2 * _EDGE:
        return (answer,)
    return answer[:_EDGE], answer[-_EDGE:]


def counted(reply: Reply, record: Record) -> Reply:
    """The reply, whose counts get into the record: at once, those of a stream as it is closed."""
    if reply.complete:
        record.count(*counts(edges(reply.body)))
        return reply
    tail = _Tail()

    def close() -> None:
        record.count(*counts(tail.parts))
        reply.close()

    return replace(reply, pieces=tail.following(reply.pieces), close=close)


class _Tail:
    """The pieces of a stream in which its counts can stand, as far as they have come."""

    def __init__(self) -> None:
        self._first = b""
        self._last: deque[bytes] = deque(maxlen=_PIECES)

    @property
    def parts(self) -> tuple[bytes, ...]:
        """The first one and the last ones."""
        return self._first, *self._last

    def following(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces as they come."""
        rest = iter(pieces)
        for piece in rest:
            self._first = piece
            yield piece
            break
        keep = self._last.append
        for piece in rest:
            keep(piece)
            yield piece
