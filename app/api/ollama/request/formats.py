"""The shape that an answer is held to: Ollama's "format", "json" or a JSON schema."""

from typing import Any

from app import jsontext
from app.api.ollama.refusal import invalid, quoted
from app.api.ollama.request import schemas
from app.api.ollama.request.ask import Lookup
from app.engine_facts import EngineFacts

_ANY_OBJECT = {"type": "object"}  # what Ollama's own grammar for "json" accepts


def for_chat(fields: dict[str, Any], facts: EngineFacts) -> dict[str, Any]:
    """The field of /v1/chat/completions, none where the text is free. Raises Refusal."""
    asked = _asked(fields)
    if asked is None:
        return {}
    if asked == "json":
        return {"response_format": {"type": "json_object"}}
    schema = schemas.bearable(asked, "format") if facts.is_llama_server else asked
    named = {"name": "schema", "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def for_completion(fields: dict[str, Any]) -> dict[str, Any]:
    """The field of llama-server's /completion, which ignores ``response_format``."""
    asked = _asked(fields)
    if asked is None:
        return {}
    if asked == "json":
        return {"json_schema": _ANY_OBJECT}
    return {"json_schema": schemas.common(schemas.bearable(asked, "format"))}


def trials(fields: dict[str, Any], facts: EngineFacts) -> tuple[Lookup, ...]:
    """The question by which a llama-server refuses a schema that it refuses in a chat.

    With /completion it may go on without a word, and without the schema.
    """
    if not isinstance(_asked(fields), dict):
        return ()
    chat = {"messages": [{"role": "user", "content": "?"}], **for_chat(fields, facts)}
    return (Lookup("/apply-template", chat, "prompt"),)


def _asked(fields: dict[str, Any]) -> Any:
    """"json", a schema or None; among the options, where Ollama ignores it, only if it is valid."""
    asked = fields.get("format")
    if asked is None:
        options = fields.get("options")
        asked = options.get("format") if isinstance(options, dict) else None
        return asked if _is_valid(asked) else None
    if asked == "":
        return None
    if not _is_valid(asked):
        raise invalid(f"invalid format: {quoted(jsontext.encode(asked).decode())}; "
                      'expected "json" or a valid JSON Schema object')
    return asked


def _is_valid(asked: Any) -> bool:
    return asked == "json" or isinstance(asked, dict)
