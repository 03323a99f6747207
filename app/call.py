"""What travels the road: a Call on the way to an engine, a Reply on the way back."""

import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum, auto
from typing import Any, Protocol

from app.record import Record

Headers = list[tuple[str, str]]


class Body(Protocol):
    """What the client sent, and the one field of it that decides where it goes."""

    @property
    def raw(self) -> bytes | bytearray:
        """The bytes for the engine."""

    @property
    def content_type(self) -> str:
        """The media type of ``raw``; "" where there is no body."""

    @property
    def model(self) -> str | None:
        """The model named in the body, None where none is."""

    @property
    def opening(self) -> str | None:
        """What tells the conversation it belongs to from others; None where nothing does."""

    def for_model(self, name: str) -> "Body":
        """This body with the model named ``name``; itself where it is already."""


class Passing(Enum):
    """Which answers of an engine come back as replies; the others are GatewayErrors."""

    SOUND = auto()     # neither a failure of the engine nor something else than the API's answer
    STATUSES = auto()  # any status; what says that it is a good answer has to be one
    ANYTHING = auto()


class Priority(IntEnum):
    """How urgent a call is; the lower number is served first."""

    HIGH = 0
    NORMAL = 1
    LOW = 2


# Paths of questions that an engine answers beside its real work; whatever is not a POST is one too.
_QUESTIONS = {
    "/tokenize", "/detokenize", "/apply-template", "/props", "/slots", "/lora-adapters",
    "/v1/messages/count_tokens",
}


@dataclass(frozen=True)
class Call:
    """One request for an engine, in canonical form.

    ``target`` is path and query as they go on the request line. ``client`` is the socket whose
    closing means that nobody waits any more. ``caller`` is who asks, as far as fairness goes;
    ``session`` names the conversation, where the client gave it a name; ``choices`` are the fields
    of the body that say how many answers are wanted, as they are, without null. ``limit`` is for
    how long the engine may be silent, in seconds; None: as long as any call of its. ``record`` is
    that of the request it is made for.
    """

    target: str
    model: str | None
    body: Body
    request_id: str
    method: str = "POST"
    accept: str = "*/*"
    client: socket.socket | None = field(default=None, repr=False)
    passing: Passing = Passing.SOUND
    priority: Priority = Priority.NORMAL
    caller: str = ""
    session: str | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)
    limit: float | None = None
    record: Record = field(default_factory=Record, repr=False)

    @property
    def takes_slot(self) -> bool:
        """Whether it is work for the engine, and no small question."""
        return self.method == "POST" and self.target.partition("?")[0] not in _QUESTIONS

    def for_model(self, name: str) -> "Call":
        """This call with the model named as the registry names it; itself where it is already."""
        body = self.body.for_model(name)
        if body is self.body and self.model == name:
            return self  # a copy costs more than all that is checked of a body
        return replace(self, model=name, body=body)


def _nothing() -> None:
    """Closes a reply that holds nothing."""


@dataclass(frozen=True)
class Reply:
    """What an engine sent back: status, the headers that may pass, and the body.

    ``pieces`` gives the body as it arrives, and raises GatewayError where the engine fails midway;
    a body that is whole is one piece with a known ``length``. Whoever gets the reply calls
    ``close``, once, whether or not the pieces were taken. Who has stopped taking them because the
    stream has said that it is over calls ``finish`` before: where the end of the body is there or
    comes within a moment, the connection serves the next call.
    """

    status: int
    headers: Headers
    pieces: Iterable[bytes]
    length: int | None = None
    close: Callable[[], None] = _nothing
    finish: Callable[[], None] = _nothing

    @classmethod
    def whole(cls, status: int, headers: Headers, body: bytes) -> "Reply":
        """A reply whose body is there already."""
        return cls(status, headers, [body], len(body))

    @property
    def complete(self) -> bool:
        """Whether the engine is done with it: the whole body is there."""
        return isinstance(self.pieces, list)

    @property
    def successful(self) -> bool:
        """Whether the engine did what was asked."""
        return 200 <= self.status < 300

    @property
    def body(self) -> bytes:
        """All pieces at once; blocks until the engine has sent them, raises GatewayError."""
        return b"".join(self.pieces)

    def header(self, name: str) -> str:
        """The first header of that name, "" where there is none."""
        lower = name.lower()
        return next((value for key, value in self.headers if key.lower() == lower), "")
