"""Numbers counted by how large they are."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

Buckets = list[tuple[str, float]]


class Histogram:
    """How many of the numbers are at most so large, for each bound. Not locked: its owner is."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def note(self, number: float) -> None:
        """Count one more."""
        self._counts[bisect_left(self._bounds, number)] += 1
        self.sum += number

    def buckets(self) -> Buckets:
        """Each bound with the count of numbers up to it, as Prometheus wants them."""
        names = [*map(str, map(float, self._bounds)), "+Inf"]
        return [(name, float(count)) for name, count in zip(names, accumulate(self._counts))]
