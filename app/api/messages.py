"""A marshmallow field for the messages of a chat, as every dialect but Ollama's has them."""

from typing import Any

from marshmallow import ValidationError, fields

from app.api.view import BLANK, WRONG_TYPE

_ROLES = ("system", "developer", "user", "assistant", "tool")
_EMPTY = "must not be empty"


class Messages(fields.Field[list[Any]]):
    """A conversation, checked in one pass: a nested schema costs 8 µs per message, this 0.1."""

    default_error_messages = {"required": _EMPTY, "null": _EMPTY}

    def __init__(self, **kwargs: Any) -> None:
        message = {"type": "object", "required": ["role"],
                   "properties": {"role": {"type": "string", "enum": list(_ROLES)}}}
        shape = {"type": "array", "minItems": 1, "items": message}
        super().__init__(metadata=shape, **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValidationError(WRONG_TYPE)
        if not value:
            raise ValidationError(_EMPTY)
        wrong = {
            index: problem
            for index, message in enumerate(value)
            if not (isinstance(message, dict) and message.get("role") in _ROLES)
            and (problem := _problem(message))
        }
        if wrong:
            raise ValidationError(wrong)
        return value


def _problem(message: Any) -> Any:
    """What is wrong with a message whose role is not one of the known ones."""
    if not isinstance(message, dict):
        return [WRONG_TYPE]
    role = message.get("role")
    if role is None or (isinstance(role, str) and not role.strip()):
        return {"role": [BLANK]}
    if not isinstance(role, str):
        return {"role": [WRONG_TYPE]}
    return {"role": [f'must match "{"|".join(_ROLES)}"']}
