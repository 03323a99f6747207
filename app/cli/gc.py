"""``gc``: what no model needs is removed."""

import argparse

from app.catalog.problems import printable
from app.catalog.store.sweep import sweep
from app.cli.command import Commands, command, home, print_json, size


def add_to(commands: Commands) -> None:
    """Add the command."""
    command(commands, "gc", _run, "remove blobs that no model needs, and unfinished downloads",
            "What another process works with stays.")


def _run(arguments: argparse.Namespace) -> int:
    removed = sweep(home())
    freed = sum(each.size for each in removed)
    if arguments.json:
        print_json({"freed": freed, "removed": [
            {"path": str(each.path), "size": each.size, "kind": each.kind} for each in removed]})
        return 0
    for each in removed:
        print(f"removed {printable(str(each.path))} ({size(each.size)})")
    print(f"{size(freed)} freed")
    return 0
