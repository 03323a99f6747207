"""Juno's fields in a body of another API: they are for the gateway, and no engine sees them.

Names and meanings: Juno's documentation, OpenAI-compatible API, "Juno request extensions".
"""

from dataclasses import dataclass
from typing import Any

from marshmallow.validate import Length, OneOf

from app.api.view import Text, View, Whole
from app.call import Priority

_PRIORITY, _SESSION, _TOP_K = "x_juno_priority", "x_juno_session_id", "x_juno_top_k"
_NAMES = {_PRIORITY, _SESSION, _TOP_K}
_LONGEST = 256  # characters

Fields = dict[str, Any]


class PriorityName(Text):
    """HIGH, NORMAL or LOW."""

    def __init__(self, **kwargs: Any) -> None:
        names = list(Priority.__members__)
        rule = OneOf(names, error=f'must match "{"|".join(names)}"')
        super().__init__(validate=rule, **kwargs)


class Name(Text):
    """A text that somebody made up to know something again by it."""

    def __init__(self, **kwargs: Any) -> None:
        rule = Length(max=_LONGEST, error=f"must have at most {_LONGEST} characters")
        super().__init__(validate=rule, **kwargs)


class ExtensionsView(View):
    """What is checked of them; null counts as absent."""

    x_juno_priority = PriorityName(allow_none=True)
    x_juno_session_id = Name(allow_none=True)
    x_juno_top_k = Whole(allow_none=True)


@dataclass(frozen=True)
class Extensions:
    """What a body asks of the gateway; ``top_k`` is None where it does not say."""

    priority: Priority = Priority.NORMAL
    session: str | None = None
    top_k: int | None = None


NONE = Extensions()


def extended(fields: Fields) -> bool:
    """Whether any of the three is there."""
    return not fields.keys().isdisjoint(_NAMES)


def priority(name: str | None) -> Priority:
    """The priority of this name, NORMAL for None."""
    return Priority.NORMAL if name is None else Priority[name]


def taken_out(fields: Fields) -> tuple[Fields, Extensions]:
    """The fields without the three, and what these say; they have been checked.

    ``x_juno_top_k`` stays as ``top_k`` where there is none: 0 is for engines, too, "all tokens".
    5.0 is 5, as not every engine takes it for a whole number.
    """
    top_k = fields.get(_TOP_K)
    found = Extensions(priority(fields.get(_PRIORITY)), fields.get(_SESSION),
                       None if top_k is None else int(top_k))
    kept = {name: value for name, value in fields.items() if name not in _NAMES}
    if found.top_k is not None and kept.get("top_k") is None:
        kept["top_k"] = found.top_k
    return kept, found
