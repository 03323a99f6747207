"""The command line's part of keys: ``python -m app.cli keys new NAME``."""

import argparse
import json
import sys
from typing import Any

from app.config.access import name
from app.config.values import Rejected
from app.keys import hash_of, new_key

_TEXT = """\
The key of {name}, which is shown this once:

  {key}

Its entry for "keys" in the configuration, or for the file that "keys-file" names:

- name: {quoted}
  sha256: "{sha256}"
"""


def add_to(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    keys = commands.add_parser("keys", help="make keys", description="Makes keys.")
    actions = keys.add_subparsers(required=True, metavar="ACTION")
    new = actions.add_parser(
        "new", help="make a key and print it once, with the entry that knows it",
        description="Makes a key and prints it once, with the entry for the configuration. "
                    "Nothing is stored: the entry holds only the key's hash.",
    )
    new.add_argument("name", metavar="NAME", help="what its holder is called in logs")
    new.add_argument("--json", action="store_true", help="print one JSON object")
    new.set_defaults(run=new_entry)


def new_entry(arguments: argparse.Namespace) -> int:
    """Print a new key and its entry; returns the exit status."""
    try:
        found = name(arguments.name)
    except Rejected as error:
        print(f"the name {error}", file=sys.stderr)
        return 2
    key = new_key()
    if arguments.json:
        print(json.dumps({"key": key, "name": found, "sha256": hash_of(key)}, ensure_ascii=False))
        return 0
    quoted = json.dumps(found, ensure_ascii=False)
    print(_TEXT.format(name=found, key=key, quoted=quoted, sha256=hash_of(key)), end="")
    return 0
