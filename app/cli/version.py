"""``version``: which gateway this is."""

import argparse

from app.cli.command import Commands, command, print_json
from app.telemetry import build


def add_to(commands: Commands) -> None:
    """Add the command."""
    command(commands, "version", _run, "print which gateway this is, and which Python runs it")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.json:
        print_json({"version": build.version(), "python": build.python()})
    else:
        print(f"Loop Gateway {build.version()}, Python {build.python()}")
    return 0
