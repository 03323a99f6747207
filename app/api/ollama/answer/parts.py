"""What one event of an engine adds to the answer, in each style of engine API."""

from collections.abc import Callable
from typing import Any, NamedTuple

from app.api.ollama.answer.events import Event

_LENGTH = ("length", "limit")  # OpenAI's word and llama-server's for "there was no more room"


class Part(NamedTuple):
    """The pieces of an answer in one event; what is empty or of a wrong type is left out."""

    content: str = ""
    thinking: str = ""
    calls: Any = None      # deltas of tool calls
    logprobs: Any = None   # in the engine's form
    done_reason: str = ""  # "stop" or "length" where the event says that the answer is over


Reader = Callable[[Event], Part]
_NOTHING = Part()


def of_chat(event: Event) -> Part:
    """A chat.completion.chunk, or a whole chat.completion, which has a message for its delta."""
    choice = _choice(event)
    if choice is None:
        return _NOTHING
    delta = choice["delta"] if "delta" in choice else choice.get("message")
    if not isinstance(delta, dict):
        delta = {}
    return Part(
        _text(delta.get("content")),
        _text(delta.get("reasoning_content")) or _text(delta.get("reasoning")),
        delta.get("tool_calls") or _older_call(delta),
        choice.get("logprobs"),
        _done_reason(choice.get("finish_reason")),
    )


def of_text(event: Event) -> Part:
    """A text_completion, in pieces or whole."""
    choice = _choice(event)
    if choice is None:
        return _NOTHING
    return Part(
        content=_text(choice.get("text")),
        logprobs=choice.get("logprobs"),
        done_reason=_done_reason(choice.get("finish_reason")),
    )


def of_completion(event: Event) -> Part:
    """What llama-server's /completion and /infill say, in pieces or whole."""
    return Part(
        content=_text(event.get("content")),
        logprobs=event.get("completion_probabilities"),
        done_reason=_done_reason(event.get("stop_type") or "stop") if event.get("stop") else "",
    )


READERS: dict[str, Reader] = {"chat": of_chat, "text": of_text, "completion": of_completion}


def _choice(event: Event) -> dict[str, Any] | None:
    """The first choice: one without an index is that too."""
    choices = event.get("choices")
    if isinstance(choices, list):
        for choice in choices:
            if isinstance(choice, dict) and not choice.get("index"):
                return choice
    return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _older_call(delta: dict[str, Any]) -> Any:
    """The one call there could be before ``tool_calls`` came."""
    call = delta.get("function_call")
    return [{"index": 0, "function": call}] if call else None


def _done_reason(word: Any) -> str:
    """Ollama knows two words for the end of an answer; "" where there is none yet."""
    if not word or not isinstance(word, str):
        return ""
    return "length" if word in _LENGTH else "stop"
