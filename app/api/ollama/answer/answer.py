"""What has to be known of a request to render its answer."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone


def _now() -> datetime:
    return datetime.now(timezone.utc)


@dataclass(frozen=True)
class Answer:
    """How one engine's reply is read, and what its lines say beside it.

    ``model`` is the name as it was asked for. ``style`` is the engine's API: "chat" is
    /v1/chat/completions, "text" /v1/completions, "completion" llama-server's /completion and
    /infill. ``stream_type`` tells an event stream from one JSON document. ``started`` (the request
    arrived) and ``loaded`` (the engine was ready for it) are readings of ``monotonic``.
    """

    model: str
    style: str
    stream_type: bool
    started: float
    loaded: float
    clock: Callable[[], datetime] = _now
    monotonic: Callable[[], float] = time.monotonic
    top_logprobs: int | None = None  # alternatives that were asked for; engines may give more
    think_tags: bool = False         # thinking comes as <think>…</think> at the start of the text
    think_opened: bool = False       # with think_tags: the prompt ended with <think> already
    # Gets the whole text and the token ids that the engine reported with it ([] where it does not),
    # gives the ids of prompt and answer for "context"; [] leaves it away. Must not raise.
    context: Callable[[str, list[int]], list[int]] | None = None

    def created_at(self) -> str:
        """The present as RFC 3339, always with microseconds."""
        return self.clock().isoformat(timespec="microseconds").replace("+00:00", "Z")
