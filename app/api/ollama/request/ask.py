"""What an engine is asked in place of an Ollama request."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

CHAT = "chat"  # chat.completion.chunk events
COMPLETION = "completion"  # llama-server's own events: content, stop, stop_type
TEXT = "text"  # text_completion events

# Always a stream: one that is not would hold up the first token, and an engine that continues an
# answer repeats its beginning there. The last event has the counts.
COUNTED = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True)
class Lookup:
    """A question to the same engine: POST ``body``; the text under ``key`` of its answer counts."""

    target: str
    body: dict[str, Any] = field(repr=False)
    key: str


@dataclass(frozen=True)
class Ask:
    """One request for the engine, always streaming; ``style`` says how its answer is to be read.

    ``body`` has no "model" yet. Where there are ``lookups``, its prompt lacks their texts: they
    are made first, each with "model" too, and what is sent is ``completed`` with them. ``trials``
    are made before all else, to hear whether the engine would refuse them. ``opening`` is the text
    of the token that the prompt begins with and that the engine may put there itself.
    """

    target: str
    body: dict[str, Any] = field(repr=False)
    style: str
    lookups: tuple[Lookup, ...] = ()
    trials: tuple[Lookup, ...] = ()
    opening: str = ""

    def completed(self, texts: Sequence[str]) -> "Ask":
        """This ask with the texts of its lookups, in their order, in its prompt.

        They follow the token ids that it holds, and come before its text where it holds images.
        """
        prompt: Any = self.body["prompt"]
        if isinstance(prompt, list):
            whole: Any = [*prompt, *texts]
        else:
            whole = {**prompt, "prompt_string": "".join(texts) + prompt["prompt_string"]}
        return replace(self, body={**self.body, "prompt": whole}, lookups=(), trials=())

    def unopened(self) -> "Ask":
        """This ask, once there are no lookups left, without ``opening`` in front of its prompt."""
        prompt: Any = self.body["prompt"]
        if isinstance(prompt, str):
            rest: Any = prompt.removeprefix(self.opening)
        else:
            rest = {**prompt, "prompt_string": prompt["prompt_string"].removeprefix(self.opening)}
        return replace(self, body={**self.body, "prompt": rest}, opening="")
