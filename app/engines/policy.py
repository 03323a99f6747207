"""What the configuration says of all engines together, and what of it counts now."""

from dataclasses import dataclass

from app.engines.slots import QueueRules
from app.engines.unit_facts import Rules


@dataclass(frozen=True)
class Policy:
    """Bounds of all engines together: bytes (None: no bound), and seconds."""

    queue: QueueRules
    keep_alive: float
    memory_budget: int | None
    min_residency: float


class PolicyInForce:
    """The policy that counts now, which is replaced as a whole. Safe to use from many threads.

    It stands for the queue rules of every engine. Whoever waits already may wait by the old ones.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def replace(self, policy: Policy) -> None:
        """From now on ``policy`` counts."""
        self._policy = policy

    @property
    def size(self) -> int:
        """How many calls may wait for one engine."""
        return self._policy.queue.size

    @property
    def max_wait(self) -> float:
        """How long a call may wait for its engine (s)."""
        return self._policy.queue.max_wait

    @property
    def budget(self) -> int | None:
        """Bytes that all managed engines may take together."""
        return self._policy.memory_budget

    def keep_alive(self) -> float:
        """How long an engine stays without a call (s), unless it is told otherwise."""
        return self._policy.keep_alive

    def rules(self) -> Rules:
        """The bounds that the plan of managed engines keeps."""
        policy = self._policy
        return Rules(policy.memory_budget, policy.min_residency, policy.queue.max_wait)
