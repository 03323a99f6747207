"""A chat that is too long for the engine's context, without its oldest messages."""

from dataclasses import replace
from typing import Any

from app import jsontext
from app.api.ollama.request.ask import CHAT, Ask

_IMAGE = 768  # tokens that an image counts for, as in Ollama
_PER_TOKEN = 4  # characters, only to weigh images against text
_ROOM = 8  # this part of the context is left for the answer


def shortened(ask: Ask, n_prompt_tokens: int, n_ctx: int) -> Ask | None:
    """The same chat with its oldest messages left out, None where nothing is left to leave out.

    The counts are the engine's. System messages and the last message stay; a tool's result never
    loses the call before it. At least one message goes, and as many as by their length it takes
    to fit, so that a few attempts are enough.
    """
    messages = ask.body["messages"] if ask.style == CHAT else []
    weights = [_weight(message) for message in messages]
    cuts = _cuts(messages, weights)
    if not cuts:
        return None
    total = sum(weights) + _weight(ask.body.get("tools", []))
    excess = total * (1 - (n_ctx - n_ctx // _ROOM) / max(n_prompt_tokens, 1))
    fitting = [cut for cut, gone in cuts.items() if gone >= excess] or [max(cuts)]
    # Many templates want no answer before the first question.
    cut = min([i for i in fitting if not _is_answer(messages[i])] or fitting)
    kept = [m for i, m in enumerate(messages) if i >= cut or m["role"] == "system"]
    return replace(ask, body={**ask.body, "messages": kept})


def _cuts(messages: list[dict[str, Any]], weights: list[int]) -> dict[int, int]:
    """Where what is kept may begin → the weight of what is left out then."""
    cuts: dict[int, int] = {}
    gone = 0
    for i, message in enumerate(messages):
        if gone and message["role"] not in ("system", "tool"):
            cuts[i] = gone
        if message["role"] != "system":
            gone += weights[i]
    return cuts


def _is_answer(message: dict[str, Any]) -> bool:
    return message["role"] == "assistant" and "tool_calls" not in message


def _weight(value: Any) -> int:
    """About how many characters of the prompt a message or the tools make."""
    pictures = 0
    if isinstance(value, dict) and isinstance(value["content"], list):
        texts = [part for part in value["content"] if part["type"] == "text"]
        pictures = len(value["content"]) - len(texts)
        value = {**value, "content": texts}
    return len(jsontext.encode(value)) + pictures * _IMAGE * _PER_TOKEN
