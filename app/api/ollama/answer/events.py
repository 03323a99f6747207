"""The bytes of an engine's reply as its events."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from app.api.ollama.answer.failure import reported, unreadable
from app.api.sse import EventParser

Event = dict[str, Any]
DONE: Event = {}  # known by identity: the engine has said that nothing follows
_DONE = b"[DONE]"
_decode = json.JSONDecoder().decode


def streamed(pieces: Iterable[bytes]) -> Iterator[Event]:
    """The objects of an event stream as they come, and DONE for a ``[DONE]``.

    Raises what the pieces raise, and GatewayError or Refusal for an event that reports an error
    or is no object.
    """
    parser = EventParser(error_lines=True)
    for piece in pieces:
        yield from _events(parser.feed(piece))
    yield from _events(parser.finish())


def document(pieces: Iterable[bytes]) -> Iterator[Event]:
    """A reply that is one JSON document, as one event with DONE behind it; raises as above."""
    event = _object(b"".join(pieces), "an answer")
    choices, content = event.get("choices"), event.get("content")
    if not (choices and isinstance(choices, list)) and not isinstance(content, str):
        raise unreadable("a JSON document that is no answer")
    yield event
    yield DONE


def _events(found: list[bytes]) -> Iterator[Event]:
    for data in found:
        bare = data.strip()
        if bare == _DONE:
            yield DONE
        elif bare:
            yield _object(bare, "an event")


def _object(data: bytes, what: str) -> Event:
    try:
        found = _decode(data.decode())
    except (ValueError, RecursionError):
        raise unreadable(f"{what} that is not JSON") from None
    if not isinstance(found, dict):
        raise unreadable(f"{what} that is no JSON object")
    error = found.get("error")
    if error:
        raise reported(error)
    if found.get("object") == "error":  # older vLLM and FastChat: the error is the whole object
        raise reported(found)
    return found
