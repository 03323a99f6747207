"""Which engines can serve a model. Pure: facts in, decision out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

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
