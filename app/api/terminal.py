"""How a stream of each API says that it is over: success, or an error; and how we say it."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.api.errors import document
from app.api.sse import EventParser
from app.errors import GatewayError

_DONE = b"[DONE]"
_LINE_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")
_ERROR = rb'"error"\s*:'


@dataclass(frozen=True)
class Grammar:
    """The end marks of one API's event stream.

    ``hint`` is found in every event that can be a mark, so that no other has to be parsed.
    ``ends`` gives the parts of the stream that an event ends: indexes of choices, or None for all.
    """

    hint: re.Pattern[bytes]
    ends: Callable[[dict[str, Any]], set[Any]]
    event: bytes = b""  # the event's name line, where the API names its events


def _choices(event: dict[str, Any]) -> set[Any]:
    choices = event.get("choices")
    return {
        choice.get("index", 0)
        for choice in (choices if isinstance(choices, list) else ())
        if isinstance(choice, dict) and choice.get("finish_reason")
    }


def _stop(event: dict[str, Any]) -> set[Any]:
    return {event.get("index", 0)} if event.get("stop") is True else set()


def _typed(*types: str) -> Callable[[dict[str, Any]], set[Any]]:
    return lambda event: {None} if event.get("type") in types else set()


def _hint(mark: bytes) -> re.Pattern[bytes]:
    return re.compile(mark + b"|" + _ERROR)


OPENAI = Grammar(_hint(rb'"finish_reason"\s*:\s*"'), _choices)
COMPLETION = Grammar(_hint(rb'"stop"\s*:\s*true'), _stop)
RESPONSES = Grammar(
    _hint(rb'"type"\s*:\s*"(?:response\.(?:completed|failed|incomplete)|error)"'),
    _typed("response.completed", "response.failed", "response.incomplete", "error"),
    b"event: error\n",
)
MESSAGES = Grammar(
    _hint(rb'"type"\s*:\s*"(?:message_stop|error)"'), _typed("message_stop", "error"),
    b"event: error\n",
)

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
        self._parts = parts
        self._parser = EventParser()
        self._ended: set[Any] = set()
        self._last = b"\n\n"  # what comes first begins a line, and nothing is open before it

    def see(self, piece: bytes) -> None:
        """Take note of the next piece; costs time linear in its length."""
        if self._grammar:
            for data in self._parser.feed(piece):
                self._note(self._grammar, data)
        self._last = piece[-4:] if len(piece) >= 4 else (self._last + piece)[-4:]

    @property
    def over(self) -> bool:
        """Whether the stream has said that it is over."""
        return None in self._ended or len(self._ended) >= self._parts

    def open_ended(self) -> bool:
        """Whether the API's streams end with a mark and this one, which has ended, has none."""
        return self._grammar is not None and not self.over and not self.ends_in_a_mark()

    def ends_in_a_mark(self) -> bool:
        """Whether the last event, whose own end did not come, is a mark; asked at the end, once."""
        if self._grammar:
            for data in self._parser.finish():
                self._note(self._grammar, data)
        return self.over

    def failure(self, error: GatewayError, path: str) -> bytes:
        """What to send for an error: the end of an open line or event, then one of our own."""
        name = self._grammar.event if self._grammar else b""
        return self.rest_of_event() + name + b"data: " + document(error, path)[1] + b"\n\n"

    def rest_of_event(self) -> bytes:
        """What ends the event that is open; nothing where none is."""
        if self._last.endswith(_LINE_ENDS):
            return b""
        return b"\n" if self._last.endswith((b"\n", b"\r")) else b"\n\n"

    def _note(self, grammar: Grammar, data: bytes) -> None:
        if data.strip() == _DONE:
            self._ended.add(None)
        elif grammar.hint.search(data):
            try:
                event = json.loads(data)
            except (ValueError, RecursionError):
                return
            if isinstance(event, dict):
                self._ended |= {None} if event.get("error") else grammar.ends(event)
