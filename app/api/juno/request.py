"""A request to /v1/inference as the chat that an engine is asked for."""

from typing import Any

from app.api import extensions
from app.api.extensions import Extensions
from app.call import Priority

Fields = dict[str, Any]

# Juno's own defaults (its documentation, "Request field mapping"), which its clients count on. It
# has none for the penalty of repetitions that every version shares: that one stays the engine's.
_TEMPERATURE, _TOP_P, _TOP_K, _MAX_TOKENS = 0.7, 0.9, 50, 200


def chat_body(fields: Fields, beside: Extensions) -> Fields:
    """The body of a chat with these messages, without a model.

    ``fields`` have been checked; what ``sampling`` says comes before what stood ``beside`` it.
    Whole numbers are written as such, 5.0 too.
    """
    given = _sampling(fields)
    body = {"messages": fields["messages"], **_drawing(given, beside.top_k),
            "max_tokens": int(given.get("maxTokens", _MAX_TOKENS))}
    if "repetitionPenalty" in given:
        body["repeat_penalty"] = given["repetitionPenalty"]
    return body


def priority(fields: Fields, beside: Extensions) -> Priority:
    """How urgent the request is."""
    name = _sampling(fields).get("priority")
    return extensions.priority(name) if name else beside.priority


def _drawing(given: Fields, top_k: int | None) -> Fields:
    """How the next token is drawn.

    The likeliest one is what engines take at a temperature of 0, whatever the two others say; some
    refuse them beside it.
    """
    if given.get("greedy"):
        return {"temperature": 0}
    return {
        "temperature": given.get("temperature", _TEMPERATURE),
        "top_p": given.get("topP", _TOP_P),
        "top_k": int(given.get("topK", _TOP_K if top_k is None else top_k)),
    }


def _sampling(fields: Fields) -> Fields:
    found = fields.get("sampling") or {}
    return {name: value for name, value in found.items() if value is not None}
