"""The shape that an answer is held to: Ollama's "format", "json" or a JSON schema."""

from typing import Any

from app import jsontext
from app.api.ollama.refusal import invalid, quoted

_ANY_OBJECT = {"type": "object"}  # what Ollama's own grammar for "json" accepts


def for_chat(fields: dict[str, Any]) -> dict[str, Any]:
    """The field of /v1/chat/completions, none where the text is free. Raises Refusal."""
    asked = _asked(fields)
    if asked is None:
        return {}
    if asked == "json":
        return {"response_format": {"type": "json_object"}}
    schema = {"name": "schema", "schema": asked}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def for_completion(fields: dict[str, Any]) -> dict[str, Any]:
    """The field of llama-server's /completion, which ignores ``response_format``."""
    asked = _asked(fields)
    return {} if asked is None else {"json_schema": _ANY_OBJECT if asked == "json" else asked}


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
