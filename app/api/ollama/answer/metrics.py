"""The six metrics of an answer: the engine's own where it has them, else counted and clocked."""

from typing import Any

from app.api.ollama.answer.answer import Answer
from app.api.ollama.answer.events import Event

NAMES = (
    "total_duration", "load_duration",
    "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration",
)
_SECOND = 10**9
_MILLISECOND = 10**6
_MOST = 10.0**15  # nothing that is counted or timed here comes near it


class Tally:
    """What is counted while an answer passes."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._timings: dict[str, Any] = {}  # llama-server's
        self._usage: dict[str, Any] = {}    # OpenAI's
        self._deltas = 0
        # A document does not tell when its first token was made: all its time is one of answering.
        self._first = None if answer.stream_type else answer.loaded

    def note(self, event: Event) -> None:
        """Take what an event says of the whole answer so far; the last word counts."""
        timings, usage = event.get("timings"), event.get("usage")
        if isinstance(timings, dict):
            self._timings = timings
        if isinstance(usage, dict):
            self._usage = usage
        elif "tokens_predicted" in event:  # llama-server's /completion
            self._usage = {
                "prompt_tokens": event.get("tokens_evaluated"),
                "completion_tokens": event["tokens_predicted"],
            }

    def delta(self) -> None:
        """Count one piece of the answer."""
        self._deltas += 1
        if self._first is None:
            self._first = self._answer.monotonic()

    def metrics(self) -> dict[str, int]:
        """All six, durations in nanoseconds; none is below 1, since clients divide by them."""
        started, loaded, now = self._answer.started, self._answer.loaded, self._answer.monotonic()
        first = now if self._first is None else self._first
        timings, usage = self._timings, self._usage
        found = (
            _whole(now - started, _SECOND),
            _whole(loaded - started, _SECOND),
            self._prompt_tokens(),
            _whole(timings.get("prompt_ms"), _MILLISECOND) or _whole(first - loaded, _SECOND),
            _whole(timings.get("predicted_n")) or _whole(usage.get("completion_tokens"))
            or self._deltas,
            _whole(timings.get("predicted_ms"), _MILLISECOND) or _whole(now - first, _SECOND),
        )
        return {name: max(value, 1) for name, value in zip(NAMES, found)}

    def _prompt_tokens(self) -> int:
        """llama-server counts apart what its cache spared it; older ones do not say how much."""
        new, cached = self._timings.get("prompt_n"), self._timings.get("cache_n")
        counted = 0 if cached is None else _whole(new) + _whole(cached)
        return counted or _whole(self._usage.get("prompt_tokens")) or _whole(new)


def _whole(value: Any, unit: int = 1) -> int:
    """A number in these units, rounded; 0 where it is none, or none that can be meant."""
    if isinstance(value, (int, float)) and 0 < value < _MOST:
        return round(value * unit)
    return 0
