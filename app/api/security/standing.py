"""What a key with a rate has left."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Standing:
    """So many of ``limit`` requests for ``reset`` seconds.

    ``exceeded`` is whether the request that was counted is one too many.
    """

    limit: int
    remaining: int
    reset: float
    exceeded: bool
