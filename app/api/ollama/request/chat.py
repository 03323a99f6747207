"""/api/chat, and what /api/generate shares with it: the request to /v1/chat/completions."""

from typing import Any

from app.api.ollama.request import (
    completion, formats, messages, options, probabilities, think, tools, turns,
)
from app.api.ollama.request.ask import CHAT, COUNTED, Ask
from app.api.ollama.request.fields import mapping, text
from app.api.ollama.request.shortening import shortened
from app.engine_facts import EngineFacts

__all__ = ["ask", "body", "shortened"]


def ask(fields: dict[str, Any], facts: EngineFacts, thinking: bool) -> Ask:
    """What the engine is asked for a chat. Raises Refusal.

    ``thinking``: the model has the capability. The model can call tools, where there are some.
    A ``template`` is the model's own, in place of that of its file.
    """
    source = text(fields.get("template"), "template")
    if source:
        return _templated(source, fields, facts, thinking)
    made = body(fields, facts, thinking)
    asked = tools.translate(fields.get("tools"), facts)
    if asked:
        made["tools"] = asked
        if facts.is_llama_server:  # which refuses probabilities in a stream with tools
            made.pop("logprobs", None)
            made.pop("top_logprobs", None)
    return Ask("/v1/chat/completions", made, CHAT)


def _templated(source: str, fields: dict[str, Any], facts: EngineFacts, thinking: bool) -> Ask:
    think.wanted(fields, thinking)
    return completion.complete(turns.prompt(source, fields.get("messages")), fields, facts)


def body(fields: dict[str, Any], facts: EngineFacts, thinking: bool) -> dict[str, Any]:
    """The body of a chat with the messages of ``fields`` and without tools. Raises Refusal."""
    top = probabilities.asked(fields)
    alternatives = {} if top is None else {"logprobs": True, "top_logprobs": max(top, 1)}
    made = {
        "messages": messages.translate(fields.get("messages"), facts),
        **options.engine_fields(mapping(fields.get("options"), "options"), facts),
        **formats.for_chat(fields, facts),
        **think.engine_fields(think.wanted(fields, thinking), facts),
        **alternatives,
        **COUNTED,
    }
    return {**made, "cache_prompt": True} if facts.is_llama_server else made
