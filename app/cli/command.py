"""What the commands on models have in common."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from app import jsontext
from app.config import load

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Run = Callable[[argparse.Namespace], int]


def command(commands: Commands, name: str, run: Run, summary: str,
            more: str = "") -> argparse.ArgumentParser:
    """Add a command that takes ``--json``; ``summary`` is its line in the list of commands."""
    parser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}. {more}".strip())
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def home() -> Path:
    """The registry that the configuration names; raises ConfigError."""
    return load(os.environ).loop.home


def print_json(value: Any) -> None:
    """One line of JSON on standard output, at once."""
    print(jsontext.encode(value).decode(), flush=True)


def size(count: int) -> str:
    """Bytes in short: 98.4 MB."""
    for unit, letters in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {letters}"
    return f"{count} B"
