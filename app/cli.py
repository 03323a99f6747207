"""The command line: ``python -m app.cli check-config``, ``keys new``."""

import argparse
import os
import sys
from collections.abc import Sequence

from app import cli_keys
from app.config import ConfigError, inert, load


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0 done, 1 it found problems, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m app.cli", description="Loop Gateway")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser(
        "check-config",
        help="check the configuration and print every problem, without serving",
        description="Checks etc/gateway.yml, the files of LOOP_CONFIG and all LOOP_ variables.",
    )
    check.set_defaults(run=check_config)
    cli_keys.add_to(commands)
    found = parser.parse_args(arguments)
    return int(found.run(found))


def check_config(_: argparse.Namespace) -> int:
    """Print what is wrong with the configuration, or that it can be used."""
    try:
        settings = load(os.environ)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    for key in inert(settings):
        print(f"{key} is set, but nothing acts on it", file=sys.stderr)
    server, engines = settings.server, settings.loop.engines
    print(f"the configuration is good: {server.address}:{server.port}, {len(engines)} engine(s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
