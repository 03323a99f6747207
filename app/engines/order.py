"""Who is next in the queue of an engine. Pure: facts in, decision out."""

import math
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


@dataclass(frozen=True)
class LastTurn:
    """When a caller had its last turn: which number it was, and when (s).

    ``at`` has for each priority when a call of that priority, or of a less urgent one, was served.
    """

    number: int = -1
    at: tuple[float, ...] = (-math.inf,) * len(Priority)

    def then(self, priority: Priority, number: int, now: float) -> "LastTurn":
        """What it is after one more turn, in which a call of that priority is served."""
        at = tuple(now if priority >= each else self.at[each] for each in Priority)
        return LastTurn(number, at)


_NONE = LastTurn()


def next_in_line(
    waiting: Sequence[Waiting], served: Mapping[str, LastTurn], now: float, step: float
) -> int:
    """The position in ``waiting`` of the call that is served next.

    First whose turn it is:

    1. The caller with the most urgent call. A call counts one priority more urgent after each
       ``step`` seconds in which it waited and its caller had no turn: no caller is starved, and
       one that has turns does not pass others because of all that it has waiting.
    2. Of these the caller that has been without a turn for longest: since its last turn, which
       ``served`` numbers, or since the call came if that is later. Callers take turns, however
       many calls each has, and those who come anew do not pass those who wait.
    3. Of callers that are equal in this the one whose last turn is longest ago, or who had none.

    Then which of its calls:

    4. The most urgent. Turns with more urgent calls do not count here: a call counts one priority
       more urgent after each ``step`` in which none of its priority or below was served, so that
       a caller's urgent calls do not starve its others.
    5. Of these the one that came first.
    """
    def between(call: Waiting) -> tuple[int, int, int, int]:
        last = served.get(call.caller, _NONE)
        urgent = urgency(call, last.at[Priority.HIGH], now, step)
        return urgent, max(last.number, call.turn), last.number, call.number

    def within(position: int) -> tuple[int, int]:
        call = waiting[position]
        last = served.get(call.caller, _NONE).at[call.priority]
        return urgency(call, last, now, step), call.number

    caller = min(waiting, key=between).caller
    return min((i for i, call in enumerate(waiting) if call.caller == caller), key=within)


def urgency(call: Waiting, served_at: float, now: float, step: float) -> int:
    """The priority that a call has by now whose caller had its turn then; lower is more urgent."""
    age = now - max(call.since, served_at)
    return max(int(Priority.HIGH), call.priority - int(age / step))
