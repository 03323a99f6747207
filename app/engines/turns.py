"""Which caller had its turn when, for the queue of one engine."""

from collections import OrderedDict
from collections.abc import Mapping

from app.call import Priority
from app.engines.order import LastTurn

_REMEMBERED = 1024  # callers; who is forgotten counts as one who had no turn yet


class Turns:
    """Numbers the turns and remembers the last one of each caller. Not locked: its owner is."""

    def __init__(self) -> None:
        self.given = 0
        self._last: OrderedDict[str, LastTurn] = OrderedDict()

    def give(self, caller: str, priority: Priority, now: float) -> None:
        """The next turn is this caller's, for a call of that priority."""
        self.given += 1
        before = self._last.get(caller, LastTurn())
        self._last[caller] = before.then(priority, self.given, now)
        self._last.move_to_end(caller)
        if len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)

    @property
    def last(self) -> Mapping[str, LastTurn]:
        """Caller → its last turn; of the callers that had theirs last."""
        return self._last
