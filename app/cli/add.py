"""``add``: a file of this machine becomes a model."""

import argparse
from pathlib import Path

from app.catalog.names import require_usable
from app.catalog.store.local import Wanted, add
from app.cli.command import Commands, command, home
from app.cli.events import follow

_MORE = """The registry shares the file itself where its file system can (a hard link), so it must
not be changed afterwards; elsewhere it gets a copy. Any part of a split model stands for all."""


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = command(commands, "add", _run, "register a GGUF file of this machine", _MORE)
    parser.add_argument("file", metavar="FILE.gguf", type=Path)
    parser.add_argument("--name", help="what to call it; otherwise its own name")
    parser.add_argument("--projector", type=Path, metavar="FILE",
                        help="the file that sees or hears for the model")
    parser.add_argument("--copy", action="store_true", help="copy the file in any case")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.name is not None:
        require_usable(arguments.name)
    wanted = Wanted(arguments.file, arguments.name or "", arguments.projector, arguments.copy)
    last = follow(add(home(), wanted), arguments.json)
    if not arguments.json:
        print(f"{last.model} is in the registry")
    return 0
