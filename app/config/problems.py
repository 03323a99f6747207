"""What is wrong with a configuration: all of it at once, each with its place and its remedy."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.config import shown


@dataclass(frozen=True)
class Problem:
    """One thing to mend: in which file or variable, at which key, which value, what is right.

    Its text has of the value what may be shown.
    """

    source: str
    path: str
    rule: str
    value: Any = field(default=None, repr=False)

    def __str__(self) -> str:
        where = f"{self.source}: {self.path}" if self.path else self.source
        if self.value is None:
            return f"{where}: {self.rule}"
        return f"{where}: {shown.value(self.value, self.path)} {self.rule}"


class ConfigError(Exception):
    """The configuration cannot be used; its text is the whole list of problems."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n  ".join([f"the configuration has {count}:", *map(str, problems)]))

    @property
    def files(self) -> list[Path]:
        """The files in which the problems are or that are missed, as far as their paths are whole.

        To watch: when one of them changes, the configuration may be right.
        """
        named = (Path(each.value if isinstance(each.value, Path) else each.source)
                 for each in self.problems)
        return [path for path in named if path.is_absolute()]
