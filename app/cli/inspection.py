"""``inspect``: what a GGUF file says of itself."""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from app.catalog.file_facts import finite
from app.catalog.inspection import Inspection, inspect
from app.catalog.problems import printable
from app.catalog.quantization import parameter_size
from app.cli.command import Commands, command, print_json, size
from app.engines.command import DEFAULT_SLOTS
from app.engines.context import context_of, memory_of
from app.settings import BUILTIN

_LONGEST = 60  # characters of a text

_MORE = """Nothing is loaded, and the registry is not looked at. The memory is what the gateway
expects of the built-in engine; of a split model parameters and memory are those of all parts."""


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = command(commands, "inspect", _run, "print what a GGUF file says of itself", _MORE)
    parser.add_argument("file", metavar="FILE.gguf", type=Path)
    parser.add_argument("--tensors", action="store_true", help="list every tensor")
    parser.add_argument("--arrays", action="store_true",
                        help="print arrays whole, such as the vocabulary")


def _run(arguments: argparse.Namespace) -> int:
    found = inspect(arguments.file)
    if arguments.json:
        print_json(_as_json(found, arguments.arrays))
        return 0
    for key, value in _summary(found).items():
        print(f"{key:<15}{printable(value)}")
    print("metadata")
    for key, value in found.metadata.values.items():
        print(f"  {printable(key):<40} {_text(value, arguments.arrays)}")
    for tensor in found.tensors if arguments.tensors else ():
        print(f"{printable(tensor.name):<42} {tensor.type:<8} {' x '.join(map(str, tensor.shape))}")
    return 0


def _summary(found: Inspection) -> dict[str, str]:
    model = found.model
    missing = f"cut short: {found.missing} bytes are missing" if found.missing else ""
    slot = context_of(BUILTIN, model, DEFAULT_SLOTS) // DEFAULT_SLOTS
    kinds = Counter(tensor.type for tensor in found.tensors)
    summary = {
        "file": f"{size(found.size)}, GGUF {found.metadata.version}",
        "whole": missing or "yes",
        "architecture": model.file.architecture,
        "parameters": f"{model.parameters} ({parameter_size(model.parameters)})"
        if model.parameters else "",
        "quantisation": model.quantization(),
        "context": str(model.context_length() or ""),
        "capabilities": ", ".join(model.capabilities()),
        "memory": f"about {size(_memory(found))} with {DEFAULT_SLOTS} slots of {slot} tokens each",
        "tensors": ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()),
    }
    return {key: value for key, value in summary.items() if value}


def _memory(found: Inspection) -> int:
    """Bytes that the built-in engine would take with the model, estimated."""
    return memory_of(BUILTIN, found.model, DEFAULT_SLOTS)


def _as_json(found: Inspection, arrays: bool) -> dict[str, Any]:
    values = found.metadata.values
    scalars = {key: finite(each) for key, each in values.items() if not isinstance(each, list)}
    lists = {key: each for key, each in values.items() if isinstance(each, list)}
    return {
        "version": found.metadata.version,
        "byte_order": found.metadata.byte_order,
        "size": found.size,
        "missing": found.missing,
        "architecture": found.model.file.architecture,
        "parameters": found.model.parameters or None,
        "quantization": found.model.quantization() or None,
        "context": found.model.context_length() or None,
        "capabilities": list(found.model.capabilities()),
        "memory_estimate": _memory(found),
        "metadata": scalars,
        "arrays": {key: finite(each) if arrays else len(each) for key, each in lists.items()},
        "tensors": [{"name": each.name, "type": each.type, "shape": list(each.shape)}
                    for each in found.tensors],
    }


def _text(value: Any, arrays: bool) -> str:
    if isinstance(value, list) and not arrays:
        return f"{len(value)} values"
    text = value if isinstance(value, str) else str(value)
    one_line = printable(text)
    if arrays or len(one_line) <= _LONGEST:
        return one_line
    return f"{one_line[:_LONGEST]}… ({len(text)} characters)"
