"""Which engines can serve a model, and which of them does. Pure: facts in, decision out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property
from hashlib import blake2b

from app.catalog.names import normal


@dataclass(frozen=True)
class Served:
    """The registry names one engine serves, as configured (globs allowed)."""

    patterns: tuple[str, ...]

    @cached_property
    def _regexes(self) -> list[re.Pattern[str]]:
        return [re.compile(translate(pattern.lower())) for pattern in self.patterns]

    def matches(self, name: str) -> bool:
        """Whether a pattern fits the name, with its tag or without, whatever its case."""
        spellings = {name.lower(), normal(name)}
        if name.lower() == normal(name):
            spellings.add(normal(name).removesuffix(":latest"))
        return any(regex.match(s) for regex in self._regexes for s in spellings)


@dataclass(frozen=True)
class Candidate:
    """An engine that can serve the model, as the choice sees it."""

    address: str
    usable: bool
    loaded: bool
    free: bool
    running: int


def candidates(name: str, engines: Sequence[Served]) -> list[int]:
    """The positions of the engines that serve the model, in the order of the configuration."""
    return [index for index, served in enumerate(engines) if served.matches(name)]


def configured_name(name: str, engines: Sequence[Served]) -> str:
    """The spelling an engine's entry gives a name that the registry does not hold."""
    for served in engines:
        for pattern in served.patterns:
            if normal(pattern) == normal(name):
                return pattern
    return name


def best(able: Sequence[Candidate], conversation: str | None) -> int:
    """The position of the engine that gets the call; ``conversation`` tells calls that belong
    together from others.

    1. Usable ones before suspect ones, loaded before not loaded, with a free slot before without.
    2. Of these the one that the conversation belongs to, so that its prompt cache is of use.
    3. Without a conversation the one with the fewest running calls, of equals the first.
    """
    return min(range(len(able)), key=lambda i: _rank(able[i], conversation))


def _rank(engine: Candidate, conversation: str | None) -> tuple[bool, bool, bool, int]:
    order = engine.running if conversation is None else -affinity(conversation, engine.address)
    return not engine.usable, not engine.loaded, not engine.free, order


def affinity(conversation: str, address: str) -> int:
    """How much a conversation belongs to an engine; the same number in every gateway.

    Rendezvous hashing (Thaler and Ravishankar, 1998): when an engine comes or goes, only the
    conversations that are its own move.
    """
    text = f"{address}\0{conversation}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
