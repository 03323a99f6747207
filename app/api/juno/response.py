"""What an engine says to a chat, as Juno's answer or as the events of its stream."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from app.api.errors import openai_error
from app.api.sse import EventParser
from app.errors import GatewayError, Kind

Fields = dict[str, Any]
_DONE = b"[DONE]"
_SHOWN = 60  # characters of what an engine says
# Why an engine says that its answer is over, in Juno's words. Calls of tools, which nobody has
# offered, end a turn as any other; what a filter has cut is no whole answer.
_REASONS = {"stop": "stop", "tool_calls": "stop", "function_call": "stop", "length": "length",
            "content_filter": "error", "error": "error"}
# What a message without a content may say in its place.
_INSTEAD = ("reasoning_content", "reasoning", "tool_calls", "function_call", "refusal")


class Said(NamedTuple):
    """The text in one object of an engine's, and why the answer ends with it ("" where not)."""

    text: str = ""
    reason: str = ""


def answer(document: bytes, request_id: str) -> Fields:
    """What answers /v1/inference, made of a whole chat completion.

    ``tokenCount`` and ``promptTokenCount`` are null where the engine did not count. Raises
    GatewayError: it is no chat completion, has no text, or does not say why it ends.
    """
    found = _object(document, "an answer")
    said = _completed(found)
    return {
        "requestId": request_id, "text": said.text,
        "tokenCount": _count(found, "completion_tokens"),
        "promptTokenCount": _count(found, "prompt_tokens"),
        "finishReason": said.reason,
    }


def streamed(pieces: Iterable[bytes]) -> Iterator[Said]:
    """What the chunks of an event stream say, up to its end.

    Raises what the pieces raise, and GatewayError: the engine reports an error, sends what nobody
    can read, or does not say why its answer is over.
    """
    parser = EventParser(error_lines=True)
    for piece in pieces:
        yield from map(_heard, parser.feed(piece))
    yield from map(_heard, parser.finish())
    raise GatewayError(Kind.UPSTREAM_ERROR, "the engine ended its answer before it was complete")


def at_once(pieces: Iterable[bytes]) -> Iterator[Said]:
    """What an engine says that was asked for a stream and sends a whole completion."""
    yield _completed(_object(b"".join(pieces), "an answer"))


def events(said: Iterable[Said], request_id: str) -> Iterator[Fields]:
    """The events of /v1/inference/stream, each as soon as what it tells is there.

    The last one, and no other, is complete: with the engine's reason, or with an error where the
    answer broke off. What fails before the first event is raised by the first step. The end of the
    engine's reply is not waited for: whoever takes the events closes the reply after them.
    """
    begun = False
    try:
        for text, reason in said:
            if text:
                begun = True
                yield {"requestId": request_id, "token": text, "isComplete": False}
            if reason:
                begun = True
                yield _last(request_id, reason)
                return
    except GatewayError as error:
        if not begun:
            raise
        yield {**_last(request_id, "error"), "error": openai_error(error)}


def _last(request_id: str, reason: str) -> Fields:
    return {"requestId": request_id, "token": "", "isComplete": True, "finishReason": reason}


def _heard(data: bytes) -> Said:
    """What one event says."""
    bare = data.strip()
    if not bare:
        return Said()
    if bare == _DONE:
        raise _unreadable("an end without a finish_reason")
    choice = _first_choice(_object(bare, "an event"))
    return Said(_text(choice.get("delta", choice.get("message"))), _reason(choice))


def _completed(found: Fields) -> Said:
    """What a whole completion says."""
    choice = _first_choice(found)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise _unreadable("an answer that is no chat completion")
    if message.get("content") is None and not any(map(message.get, _INSTEAD)):
        raise _unreadable("an answer without a text")
    said = Said(_text(message), _reason(choice))
    if not said.reason:
        raise _unreadable("an answer without a finish_reason")
    return said


def _object(data: bytes, what: str) -> Fields:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise _unreadable(f"{what} that is not JSON") from None
    if not isinstance(found, dict):
        raise _unreadable(f"{what} that is no JSON object")
    if error := found.get("error"):
        said = error.get("message") if isinstance(error, dict) else error
        text = said if isinstance(said, str) and said else "the engine reported an error"
        raise GatewayError(Kind.UPSTREAM_ERROR, text)
    return found


def _unreadable(what: str) -> GatewayError:
    return GatewayError(Kind.UPSTREAM_ERROR, f"the engine sent {what}")


def _first_choice(found: Fields) -> Fields:
    """The choice that is told; one that says nothing where there is none."""
    choices = found.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and not choice.get("index"):
            return choice
    return {}


def _text(part: Any) -> str:
    """The content of a message or of a piece of one; calls of tools and thoughts are none of it."""
    text = part.get("content") if isinstance(part, dict) else None
    if not isinstance(text, (str, type(None))):
        raise _unreadable("a content that is no text")
    return text or ""


def _reason(choice: Fields) -> str:
    word = choice.get("finish_reason")
    if not word:
        return ""
    if not isinstance(word, str) or word not in _REASONS:
        raise _unreadable(f"an unknown finish_reason: {json.dumps(word)[:_SHOWN]}")
    return _REASONS[word]


def _count(found: Fields, name: str) -> int | None:
    usage = found.get("usage")
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None
