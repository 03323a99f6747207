"""What is logged and counted about one request, gathered while it is answered."""

import time
from dataclasses import dataclass, field
from enum import Enum

from app.errors import GatewayError, Kind

LEFT = 499  # the status of a request whose client did not wait for the answer, as nginx has it


class Closer(Enum):
    """Who ended an exchange: the gateway at the end of its answer, or one of the others before."""

    GATEWAY = "gateway"
    ENGINE = "engine"
    CLIENT = "client"


@dataclass(slots=True)
class Record:
    """One request. Times are in seconds, ``began`` is a reading of the monotonic clock.

    The API makes it and the gateway adds to it, call by call: ``queue``, ``load`` and ``answering``
    are what the calls spent waiting for a slot, for engines to load, and for the first byte of an
    engine's answer. ``known`` is whether registry or configuration name the model; what only the
    client names is no label of a metric. Used by one thread at a time.
    """

    method: str = ""
    began: float = field(default_factory=time.monotonic)
    request_id: str = ""
    principal: str | None = None
    route: str | None = None
    model: str | None = None
    known: bool = False
    engine: str | None = None
    queue: float = 0.0
    load: float = 0.0
    answering: float = 0.0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    status: int = 0
    error: str | None = None
    closed_by: Closer = Closer.GATEWAY
    first_byte: float | None = None
    total: float = 0.0
    bytes_out: int = 0

    def failed(self, error: GatewayError) -> None:
        """The answer is this error, whatever it was meant to be."""
        self.closed_by = Closer.GATEWAY
        self._note(error.kind)
        if self.model is None:
            self.model = error.model

    def broke_off(self, kind: Kind) -> None:
        """The answer had begun, and is not whole because of an error of this kind."""
        self.closed_by = Closer.ENGINE
        self._note(kind)

    def abandoned(self) -> None:
        """The client took no more of the answer."""
        self._note(Kind.CLIENT_GONE)

    def count(self, prompt: int | None, completion: int | None) -> None:
        """An engine said so of the tokens of its answer; None where it did not."""
        if prompt is not None:
            self.prompt_tokens = (self.prompt_tokens or 0) + prompt
        if completion is not None:
            self.completion_tokens = (self.completion_tokens or 0) + completion

    def server_timing(self) -> str:
        """Where its time went, in the form of the header Server-Timing (W3C Server Timing)."""
        return (f"queue;dur={1000 * self.queue:.1f}, load;dur={1000 * self.load:.1f}, "
                f"engine;dur={1000 * self.answering:.1f}")

    def end(self) -> None:
        """The exchange is over, and what it was is settled."""
        self.total = time.monotonic() - self.began
        if not self.bytes_out:
            self.first_byte = None
        if self.closed_by is Closer.CLIENT:
            self.status = LEFT

    def _note(self, kind: Kind) -> None:
        self.error = kind.name.lower()
        if kind is Kind.CLIENT_GONE:
            self.closed_by = Closer.CLIENT
