"""Who is next in the queue of an engine. Pure: facts in, decision out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.call import Priority


@dataclass(frozen=True)
class Waiting:
    """One call that waits: its priority, who asks, since when (s), its number of arrival."""

    priority: Priority
    caller: str
    since: float
    number: int


def next_in_line(
    waiting: Sequence[Waiting], served: Mapping[str, int], now: float, step: float
) -> int:
    """The position in ``waiting`` of the call that is served next.

    1. The most urgent first; after each ``step`` seconds a call counts one priority more urgent,
       so that none waits for ever.
    2. Of these the caller whose last turn is longest ago: ``served`` is caller → number of the
       turn, and who is not in it had none. Callers take turns, however many calls each has.
    3. Of one caller's calls the one that came first.
    """
    return min(range(len(waiting)), key=lambda i: _rank(waiting[i], served, now, step))


def _rank(
    call: Waiting, served: Mapping[str, int], now: float, step: float
) -> tuple[int, int, int]:
    return urgency(call, now, step), served.get(call.caller, -1), call.number


def urgency(call: Waiting, now: float, step: float) -> int:
    """The priority that the call has by now; lower is more urgent."""
    return max(int(Priority.HIGH), call.priority - int((now - call.since) / step))
