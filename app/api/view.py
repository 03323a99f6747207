"""Marshmallow fields for views of a body: JSON types first, then rules, in the lesson's words.

A view only checks; nothing is ever rebuilt from it. ``null`` counts as absent. What a field says of
itself in ``metadata`` is its JSON Schema, from which /openapi.json is made.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from marshmallow import EXCLUDE, Schema, ValidationError, fields

WRONG_TYPE = "has the wrong JSON type"
BLANK = "must not be blank"


class View(Schema):
    """A schema that looks at the fields it names and ignores all others."""

    class Meta:
        unknown = EXCLUDE


class Text(fields.Field[str]):
    """A text that, unless ``may_be_blank``, is more than white space."""

    default_error_messages = {"required": BLANK, "null": BLANK}

    def __init__(self, may_be_blank: bool = False, **kwargs: Any) -> None:
        shape = {"type": "string", **({} if may_be_blank else {"pattern": r"\S"})}
        super().__init__(metadata=shape, **kwargs)
        self._may_be_blank = may_be_blank

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise ValidationError(WRONG_TYPE)
        if not self._may_be_blank and not value.strip():
            raise ValidationError(BLANK)
        return value


class Flag(fields.Field[bool]):
    """true or false."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(metadata={"type": "boolean"}, **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise ValidationError(WRONG_TYPE)
        return value


class Number(fields.Field[float]):
    """A number between two bounds, both included."""

    def __init__(self, low: float, high: float = math.inf, **kwargs: Any) -> None:
        bounds = {"minimum": low} if math.isinf(high) else {"minimum": low, "maximum": high}
        super().__init__(metadata={"type": "number", **bounds}, **kwargs)
        self._low, self._high = low, high

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> float:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise ValidationError(WRONG_TYPE)
        if value < self._low:
            raise ValidationError(f"must be greater than or equal to {self._low}")
        if value > self._high:
            raise ValidationError(f"must be less than or equal to {self._high}")
        return value


class Whole(fields.Field[int]):
    """A whole number that is not negative; 5.0 is whole too, as JSON has one kind of number."""

    _least = 0
    _broken = "must be greater than or equal to 0"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(metadata={"type": "integer", "minimum": self._least}, **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if not whole or isinstance(value, bool):
            raise ValidationError(WRONG_TYPE)
        if value < self._least:
            raise ValidationError(self._broken)
        return int(value)


class Positive(Whole):
    """A whole number above zero."""

    _least = 1
    _broken = "must be greater than 0"


class Part(fields.Field[dict[str, Any]]):
    """An object within the body, with a view of its own."""

    def __init__(self, view: Schema, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.view = view

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValidationError(WRONG_TYPE)
        errors = self.view.validate(value)
        if errors:
            raise ValidationError(errors)
        return value


class AnyView(View):
    """What is checked of an endpoint that only passes through: what the gateway itself acts on."""

    model = Text(allow_none=True)
    stream = Flag(allow_none=True)


def first_problem(body: dict[str, Any], *views: Schema) -> tuple[str, str] | None:
    """The path and the broken rule of the first problem, wrong types before anything else.

    No two of the views name the same field.
    """
    errors: dict[Any, Any] = {}
    for view in views:
        errors.update(view.validate(body))
    if not errors:
        return None
    problems = sorted(_flat(errors, ""))
    return next((p for p in problems if p[1] == WRONG_TYPE), problems[0])


def _flat(errors: Mapping[Any, Any] | list[str], path: str) -> Iterator[tuple[str, str]]:
    """Marshmallow's nested errors as (path, rule), such as ("messages[0].role", …)."""
    if not isinstance(errors, Mapping):
        yield path, errors[0]
        return
    for key, below in errors.items():
        step = f"[{key}]" if isinstance(key, int) else f".{key}" if path else str(key)
        yield from _flat(below, path + step)
