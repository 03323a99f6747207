"""``check-config``: whether the configuration can be used."""

import argparse
import os
import sys

from app.cli.command import Commands, command, print_json
from app.config import ConfigError, inert, load
from app.settings import Settings


def add_to(commands: Commands) -> None:
    """Add the command."""
    command(commands, "check-config", check_config,
            "check the configuration and print every problem, without serving",
            "Checks etc/gateway.yml, the files of LOOP_CONFIG and all LOOP_ variables.")


def check_config(arguments: argparse.Namespace) -> int:
    """Print that the configuration can be used; raises ConfigError with what is wrong with it.

    As JSON what is wrong with it is printed too.
    """
    try:
        settings = load(os.environ)
    except ConfigError as error:
        if not arguments.json:
            raise
        print_json({"good": False, "problems": [
            {"source": each.source, "key": each.path or None, "problem": str(each)}
            for each in error.problems]})
        return 1
    if arguments.json:
        print_json({"good": True, "problems": [], "without_effect": inert(settings),
                    **_served(settings)})
        return 0
    for key in inert(settings):
        print(f"{key} is set, but nothing acts on it", file=sys.stderr)
    found = _served(settings)
    print(f"the configuration is good: {found['address']}:{found['port']}, "
          f"{found['engines']} engine(s)")
    return 0


def _served(settings: Settings) -> dict[str, object]:
    server = settings.server
    return {"address": server.address, "port": server.port, "engines": len(settings.loop.engines)}
