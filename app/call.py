"""What travels the road: a Call on the way to an engine, a Reply on the way back."""

from dataclasses import dataclass, field, replace
from typing import Any

from app import jsontext

Headers = list[tuple[str, str]]


@dataclass(frozen=True)
class Body:
    """A JSON object as the client sent it: its bytes, and the dict that was parsed from them."""

    raw: bytes
    fields: dict[str, Any] = field(repr=False)

    def with_field(self, name: str, value: Any) -> "Body":
        """This body with one field set: the same bytes where it has that value already.

        Otherwise the dict is serialised again, its order and the value of every number kept.
        """
        if name in self.fields and self.fields[name] == value:
            return self
        fields = {**self.fields, name: value}
        return Body(jsontext.encode(fields), fields)


@dataclass(frozen=True)
class Call:
    """One request for an engine. ``model`` is the name as asked, None where none was given."""

    path: str
    model: str | None
    body: Body
    request_id: str

    def for_model(self, name: str) -> "Call":
        """This call with the model named as the registry names it."""
        return replace(self, model=name, body=self.body.with_field("model", name))


@dataclass(frozen=True)
class Reply:
    """What an engine sent back: status, the headers that may pass, and the bytes of the body."""

    status: int
    headers: Headers
    body: bytes

    @property
    def successful(self) -> bool:
        """Whether the engine did what was asked."""
        return 200 <= self.status < 300
