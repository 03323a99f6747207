"""``verify``: whether files are still what their manifests say."""

import argparse
from dataclasses import asdict

from app.catalog.problems import printable
from app.catalog.registry import Registry
from app.catalog.store.entries import find
from app.catalog.store.verify import Checked, verify
from app.cli.command import Commands, command, home, print_json
from app.cli.events import Display


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = command(
        commands, "verify", _run, "read the files of models and compare their SHA-256",
        "Without NAME those of all models. pull --check brings wrong files anew.")
    parser.add_argument("names", metavar="NAME", nargs="*")


def _run(arguments: argparse.Namespace) -> int:
    registry = home()
    models = [find(registry, name) for name in arguments.names] or Registry(registry).entries()
    checked = []
    with Display() as display:
        for event in verify(models):
            if isinstance(event, Checked):
                display.end()
                checked.append(event)
                if not arguments.json:
                    print(f"{event.model}: {printable(event.file)} {event.problem or 'is good'}")
            elif not arguments.json:
                display.show(event)
    if arguments.json:
        print_json([asdict(each) for each in checked])
    return int(any(each.problem for each in checked))
