"""The command line: ``python -m app.cli COMMAND``."""

import argparse
import sys
from collections.abc import Sequence

from app import jsontext
from app.arguments import Parser
from app.catalog.problems import BadName, CatalogError
from app.cli import (
    add, check_config, gc, inspection, keys, listing, models, pull, remove, verify, version,
)
from app.config import ConfigError

# Each module has add_to(commands), which adds a parser with ``run``: the parsed arguments → the
# exit status.
_COMMANDS = (
    check_config, models, inspection, pull, add, listing, remove, verify, gc, keys, version,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0 done, 1 it found problems, 2 wrong usage."""
    parser = Parser(prog="python -m app.cli", description="Loop Gateway")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    parsed = parser.parse_args(arguments)
    try:
        return int(parsed.run(parsed))
    except ConfigError as error:
        return _failed(parsed, str(error), 1)
    except CatalogError as error:
        return _failed(parsed, str(error), 2 if isinstance(error, BadName) else 1)
    except KeyboardInterrupt:
        return _failed(parsed, "stopped: what was done so far is kept, start it again to go on", 1)


def _failed(parsed: argparse.Namespace, message: str, status: int) -> int:
    if getattr(parsed, "json", False):
        print(jsontext.encode({"error": message}).decode())
    else:
        print(message, file=sys.stderr)
    return status
