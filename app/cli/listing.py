"""``ls`` and ``show``: what is in the registry."""

import argparse
from typing import Any

from app.catalog.facts import FactsCache, ModelFacts
from app.catalog.manifest import Entry
from app.catalog.problems import printable
from app.catalog.registry import Registry
from app.catalog.store.entries import find
from app.cli.command import Commands, command, home, print_json, size
from app.cli.table import print_table


def add_to(commands: Commands) -> None:
    """Add the commands."""
    command(commands, "ls", _list, "list the models of the registry")
    show = command(commands, "show", _show, "print what is known of a model")
    show.add_argument("name", metavar="NAME")


def _list(arguments: argparse.Namespace) -> int:
    entries = Registry(home()).entries()
    if arguments.json:
        print_json([_of_manifest(entry) for entry in entries])
        return 0
    rows = [(e.name, size(e.size), e.quant or "-", e.pulled_at) for e in entries]
    print_table(("NAME", "SIZE", "QUANT", "PULLED"), rows)
    return 0


def _show(arguments: argparse.Namespace) -> int:
    facts = FactsCache().of_model(find(home(), arguments.name))
    known = _of_model(facts)
    if arguments.json:
        print_json(known)
        return 0
    for key, value in known.items():
        if key == "files":
            for file in value:
                text = f"{file['path']} ({size(file['size'])}, {file['sha256'][:12]})"
                print(f"{'file':<15}{printable(text)}")
        elif value:
            text = ", ".join(value) if isinstance(value, (list, tuple)) else value
            print(f"{key:<15}{size(value) if key == 'size' else printable(str(text))}")
    return 0


def _of_manifest(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name, "repo": entry.repo, "revision": entry.revision,
        "commit": entry.commit, "quant": entry.quant, "size": entry.size,
        "files": [vars(file) for file in entry.files], "pulledAt": entry.pulled_at,
        **({"modelfile": entry.modelfile} if entry.modelfile else {}),
    }


def _of_model(facts: ModelFacts) -> dict[str, Any]:
    return {
        **_of_manifest(facts.entry),
        "directory": str(facts.entry.directory),
        "quant": facts.quantization(),
        "architecture": facts.file.architecture,
        "parameters": facts.parameter_size,
        "context": facts.context_length(),
        "capabilities": list(facts.capabilities()),
    }
