"""What is wrong with a configuration: all of it at once, each with its place and its remedy."""

from dataclasses import dataclass
from typing import Any

_SECRET = "api-key"


@dataclass(frozen=True)
class Problem:
    """One thing to mend: in which file or variable, at which key, which value, what is right."""

    source: str
    path: str
    rule: str
    value: Any = None

    def __str__(self) -> str:
        where = f"{self.source}: {self.path}" if self.path else self.source
        if self.value is None:
            return f"{where}: {self.rule}"
        shown = "(not shown)" if self.path.endswith(_SECRET) else _short(self.value)
        return f"{where}: {shown} {self.rule}"


class ConfigError(Exception):
    """The configuration cannot be used; its text is the whole list of problems."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n  ".join([f"the configuration has {count}:", *map(str, problems)]))


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
