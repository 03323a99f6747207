"""Whether and how hard the model is to think before it answers."""

from typing import Any

from app.api.ollama.refusal import invalid, quoted
from app.engine_facts import EngineFacts

Think = bool | str | None  # a text is a level

_LEVELS = ("high", "medium", "low", "max")
_ALLOWED = '"high", "medium", "low", "max", true, or false'
_HARMONY = "<|channel|>"  # in the template of the gpt-oss family, whose highest level is "high"


def wanted(fields: dict[str, Any], capable: bool) -> Think:
    """What the request asks for; without a word a model that can think does. Raises Refusal.

    ``capable``: the model has the capability "thinking".
    """
    think: Any = fields.get("think")
    if isinstance(think, str) and think not in _LEVELS:
        raise invalid(f"invalid think value: {quoted(think)} (must be {_ALLOWED})")
    if not isinstance(think, (bool, str, type(None))):
        raise invalid(f"think must be a boolean or string ({_ALLOWED})")
    if think and not capable:
        raise invalid(f"{quoted(str(fields.get('model', '')))} does not support thinking")
    return True if think is None and capable else think


def engine_fields(think: Think, facts: EngineFacts) -> dict[str, Any]:
    """The fields of a chat request; an engine that is no llama-server is told levels only."""
    if not facts.is_llama_server:
        return {"reasoning_effort": _spoken(think)} if isinstance(think, str) else {}
    if think is None:
        return {}
    arguments: dict[str, Any] = {"enable_thinking": bool(think)}
    if isinstance(think, str):
        harmony = _HARMONY in facts.chat_template
        arguments["reasoning_effort"] = _spoken(think) if harmony else think
    return {"chat_template_kwargs": arguments}


def _spoken(level: str) -> str:
    return "high" if level == "max" else level
