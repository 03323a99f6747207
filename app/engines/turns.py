"""Which caller had its turn when, for the queue of one engine."""

from collections import OrderedDict
from collections.abc import Mapping

_REMEMBERED = 1024  # callers; who is forgotten counts as one who had no turn yet


class Turns:
    """Numbers the turns and remembers the last one of each caller. Not locked: its owner is."""

    def __init__(self) -> None:
        self.given = 0
        self._last: OrderedDict[str, int] = OrderedDict()

    def give(self, caller: str) -> None:
        """The next turn is this caller's."""
        self.given += 1
        self._last[caller] = self.given
        self._last.move_to_end(caller)
        if len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)

    @property
    def last(self) -> Mapping[str, int]:
        """Caller → number of its last turn; of the callers that had theirs last."""
        return self._last
