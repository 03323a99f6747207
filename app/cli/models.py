"""``models``: what GET /v1/models lists."""

import argparse
import os
from typing import Any

from app.api.openai.response import model_object
from app.catalog.facts import FactsCache
from app.catalog.registry import Registry
from app.cli.command import Commands, command, print_json, size
from app.cli.table import print_table
from app.config import load
from app.engines.router import Served, candidates
from app.model_status import UNLOADED

_MORE = """Read from the registry and the configuration; no gateway and no engine is asked, so
nothing is said of what is loaded."""


def add_to(commands: Commands) -> None:
    """Add the command."""
    command(commands, "models", _run, "list the models as GET /v1/models does", _MORE)


def _run(arguments: argparse.Namespace) -> int:
    loop = load(os.environ).loop
    served = [Served(engine.models) for engine in loop.engines]
    models = map(FactsCache().of_model, Registry(loop.home).entries())
    found = [model_object(model, UNLOADED) for model in models]
    for model in found:
        del model["status"]  # only a gateway that runs knows it
        model["engines"] = [f"loop.engines[{i}]" for i in candidates(model["id"], served)]
    if arguments.json:
        print_json({"object": "list", "data": found})
        return 0
    print_table(("MODEL", "PARAMETERS", "QUANT", "CONTEXT", "SIZE", "SERVED BY"), map(_row, found))
    return 0


def _row(model: dict[str, Any]) -> tuple[str, ...]:
    meta = model["meta"]
    return (model["id"], str(meta.get("n_params", "-")), meta.get("ftype", "-"),
            str(model.get("context_length", "-")), size(meta.get("size", 0)),
            ", ".join(model["engines"]) or "nothing")
