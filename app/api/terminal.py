"""How a stream of each API says that it is over: success, or an error; and how we say it."""

import re
from dataclasses import dataclass

from app.api.errors import document
from app.errors import GatewayError

_OVERLAP = 96  # bytes; longer than any mark, which two pieces may share
_LINE_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")


@dataclass(frozen=True)
class Grammar:
    """The marks of one API's event stream.

    ``end`` ends the whole stream. ``part`` ends one of the answers in it, where there can be more
    than one. Inside a JSON text a quote is escaped, so no answer can hold a mark by accident.
    """

    end: re.Pattern[bytes]
    part: re.Pattern[bytes] | None = None
    event: bytes = b""  # the event's name line, where the API names its events


_DONE = rb"(?<=[\r\n])data: ?\[DONE\]"
_ERROR = rb'(?<=[\r\n])data: ?\{\s*"error"\s*:'
_TYPE = rb'"type"\s*:\s*"'


def _end(*marks: bytes) -> re.Pattern[bytes]:
    return re.compile(b"|".join((*marks, _DONE, _ERROR)))


OPENAI = Grammar(end=_end(), part=re.compile(rb'"finish_reason"\s*:\s*"'))
COMPLETION = Grammar(end=_end(rb'"stop"\s*:\s*true'))
RESPONSES = Grammar(
    end=_end(_TYPE + rb'(?:response\.(?:completed|failed|incomplete)|error)"'),
    event=b"event: error\n",
)
MESSAGES = Grammar(end=_end(_TYPE + rb'(?:message_stop|error)"'), event=b"event: error\n")

_BY_PATH = {
    "/v1/chat/completions": OPENAI, "/v1/completions": OPENAI,
    "/chat/completions": OPENAI, "/completions": OPENAI,
    "/completion": COMPLETION, "/infill": COMPLETION,
    "/v1/responses": RESPONSES, "/responses": RESPONSES, "/v1/messages": MESSAGES,
}


def grammar_of(path: str) -> Grammar | None:
    """The grammar of the streams of a path; None where nothing is known of them."""
    return _BY_PATH.get(path)


class Ending:
    """Follows one event stream, piece by piece, and knows whether and how it ended."""

    def __init__(self, grammar: Grammar | None, parts: int) -> None:
        """``parts`` is how many answers the stream holds, each with an end of its own."""
        self._grammar = grammar
        self._missing = parts
        self._over = False
        self._last = b"\n\n"  # what comes first begins a line, and nothing is open before it

    def see(self, piece: bytes) -> None:
        """Take note of the next piece; costs time linear in its length."""
        if self._grammar and not self._over:
            self._search(self._grammar, piece)
        tail = piece if len(piece) >= _OVERLAP else self._last + piece
        self._last = tail[-_OVERLAP:]

    @property
    def over(self) -> bool:
        """Whether the stream has said that it is over."""
        return self._over or self._missing <= 0

    @property
    def open_ended(self) -> bool:
        """Whether the API's streams end with a mark and this one has none yet."""
        return self._grammar is not None and not self.over

    def failure(self, error: GatewayError, path: str) -> bytes:
        """What to send for an error: the end of an open line or event, then one of our own."""
        name = self._grammar.event if self._grammar else b""
        return self._line_end() + name + b"data: " + document(error, path)[1] + b"\n\n"

    def _search(self, grammar: Grammar, piece: bytes) -> None:
        window = self._last + piece
        new = len(self._last)
        self._over = any(m.end() > new for m in grammar.end.finditer(window))
        if grammar.part:
            self._missing -= sum(m.end() > new for m in grammar.part.finditer(window))

    def _line_end(self) -> bytes:
        if self._last.endswith(_LINE_ENDS):
            return b""
        return b"\n" if self._last.endswith((b"\n", b"\r")) else b"\n\n"
