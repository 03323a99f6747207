"""What is wrong with a configuration: all of it at once, each with its place and its remedy."""

import re
from dataclasses import dataclass, field
from typing import Any

_KEY = re.compile(r"(api[-_]key|rate[-_]storage|sha256)$")
# The list of keys, and engines that are written as something else than a list of mappings.
_HOLDS_KEYS = re.compile(r"^keys\b(?!-)|^loop\.engines(\[\d+\])?$")


@dataclass(frozen=True)
class Problem:
    """One thing to mend: in which file or variable, at which key, which value, what is right."""

    source: str
    path: str
    rule: str
    value: Any = field(default=None, repr=False)

    def __str__(self) -> str:
        where = f"{self.source}: {self.path}" if self.path else self.source
        if self.value is None:
            return f"{where}: {self.rule}"
        return f"{where}: {self._shown} {self.rule}"

    @property
    def _shown(self) -> str:
        """The value, unless there may be a key or a password in it."""
        if isinstance(self.value, (dict, list)) and self.value:
            return "a mapping" if isinstance(self.value, dict) else "a list"
        if _KEY.search(self.path) or (isinstance(self.value, str) and self._may_hold_a_key):
            return "(not shown)"
        shown = repr(self.value)
        return shown if len(shown) <= 80 else f"{shown[:77]}..."

    @property
    def _may_hold_a_key(self) -> bool:
        return bool(_HOLDS_KEYS.search(self.path)) or "@" in str(self.value)


class ConfigError(Exception):
    """The configuration cannot be used; its text is the whole list of problems."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n  ".join([f"the configuration has {count}:", *map(str, problems)]))
