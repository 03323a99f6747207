"""``rm``: models leave the registry."""

import argparse

from app.catalog.store.entries import find, remove
from app.cli.command import Commands, command, home, print_json


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = command(commands, "rm", _run, "remove models",
                     "Files that no other model needs are removed with them.")
    parser.add_argument("names", metavar="NAME", nargs="+")


def _run(arguments: argparse.Namespace) -> int:
    registry = home()
    names = [find(registry, name).name for name in arguments.names]  # all or nothing
    for name in dict.fromkeys(names):
        remove(registry, name)
        if not arguments.json:
            print(f"removed {name}")
    if arguments.json:
        print_json({"removed": list(dict.fromkeys(names))})
    return 0
