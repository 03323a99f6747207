"""``pull``: a model comes from the Hugging Face hub."""

import argparse
from dataclasses import replace

from app.catalog.hub.pull import Wanted, pull
from app.catalog.hub.reference import parse
from app.catalog.names import require_usable
from app.cli.command import Commands, command, home
from app.cli.events import follow

_MORE = """MODEL is ORG/REPO or ORG/REPO:QUANT, with hf.co/ before it or not, or an address on
huggingface.co. Without QUANT it is Q4_K_M, or what comes nearest. A download that was interrupted
goes on where it stopped. HF_ENDPOINT, HF_TOKEN, HTTPS_PROXY are honoured."""


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = command(commands, "pull", _run, "bring a model from the Hugging Face hub", _MORE)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--name", help="what to call it, instead of ORG/REPO:QUANT")
    parser.add_argument("--revision", help="branch, tag or commit of the repository")
    parser.add_argument("--check", action="store_true",
                        help="read the files that are there, and bring wrong ones anew")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.name is not None:
        require_usable(arguments.name)
    reference = parse(arguments.model)
    if arguments.revision:
        reference = replace(reference, revision=arguments.revision)
    wanted = Wanted(reference, arguments.name or "", arguments.check)
    last = follow(pull(home(), wanted), arguments.json)
    if not arguments.json:
        print(f"{last.model} is in the registry")
    return 0
