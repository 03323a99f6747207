"""A JSON reader that takes nothing but JSON: what a strict client would refuse, it refuses."""

from __future__ import annotations

import json
from typing import Any


def strict_json(data: bytes) -> Any:
    """The value in `data`; raises ValueError for NaN, Infinity, repeated keys and bad UTF-8."""
    text = data.decode("utf-8")
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError(f"a key is repeated in {[key for key, _ in pairs]}")
    return result
