"""Order statistics of many measurements."""

from __future__ import annotations

from collections.abc import Sequence


def quantile(values: Sequence[float], percent: int) -> float:
    """The smallest of the values that `percent` of them do not exceed; there must be one."""
    position = -(-len(values) * percent // 100)
    return sorted(values)[max(0, position - 1)]
