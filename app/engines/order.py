"""Who is next in the queue of an engine. Pure: facts in, decision out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.call import Priority


@dataclass(frozen=True)
class Waiting:
    """One call that waits: its priority, who asks, since when (s), its number of arrival.

    ``turn`` is the number of the turn that had been given last when it came.
    """

    priority: Priority
    caller: str
    since: float
    number: int
    turn: int = 0


def next_in_line(
    waiting: Sequence[Waiting], served: Mapping[str, int], now: float, step: float
) -> int:
    """The position in ``waiting`` of the call that is served next.

    1. The most urgent first; after each ``step`` seconds a call counts one priority more urgent,
       so that none waits for ever.
    2. Of these the caller that has been without a turn for longest: since its last turn, which
       ``served`` numbers, or since the call came if that is later. Callers take turns, however
       many calls each has, and those who come anew do not pass those who wait.
    3. Of callers that are equal in this the one whose last turn is longest ago, or who had none.
    4. Of one caller's calls the one that came first.
    """
    return min(range(len(waiting)), key=lambda i: _rank(waiting[i], served, now, step))


def _rank(
    call: Waiting, served: Mapping[str, int], now: float, step: float
) -> tuple[int, int, int, int]:
    last = served.get(call.caller, -1)
    return urgency(call, now, step), max(last, call.turn), last, call.number


def urgency(call: Waiting, now: float, step: float) -> int:
    """The priority that the call has by now; lower is more urgent."""
    return max(int(Priority.HIGH), call.priority - int((now - call.since) / step))
