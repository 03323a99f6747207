"""``check-config``: whether the configuration can be used."""

import argparse
import os
import sys

from app.cli.command import Commands
from app.config import inert, load


def add_to(commands: Commands) -> None:
    """Add the command."""
    check = commands.add_parser(
        "check-config",
        help="check the configuration and print every problem, without serving",
        description="Checks etc/gateway.yml, the files of LOOP_CONFIG and all LOOP_ variables.",
    )
    check.set_defaults(run=check_config)


def check_config(_: argparse.Namespace) -> int:
    """Print that the configuration can be used; raises ConfigError with what is wrong with it."""
    settings = load(os.environ)
    for key in inert(settings):
        print(f"{key} is set, but nothing acts on it", file=sys.stderr)
    server, engines = settings.server, settings.loop.engines
    print(f"the configuration is good: {server.address}:{server.port}, {len(engines)} engine(s)")
    return 0
