"""Model files that say how large a model is, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fakes.gguf_writer import Pair, Type, gguf


def shaped(architecture: str, keys: Mapping[str, Any], words: int = 0) -> bytes:
    """A file with these keys of its architecture and a vocabulary of so many words.

    Numbers become UINT64 or INT64, lists arrays of INT64, of BOOL or of FLOAT32.
    """
    pairs: list[Pair] = [("general.architecture", Type.STRING, architecture)]
    pairs += [(f"{architecture}.{key}", *_typed(value)) for key, value in keys.items()]
    if words:
        pairs.append(("tokenizer.ggml.tokens", Type.ARRAY, (Type.STRING, ["w"] * words)))
    return gguf(pairs)


def _typed(value: Any) -> tuple[int, Any]:
    if isinstance(value, list):
        return Type.ARRAY, (_kind(value[0]) if value else Type.INT64, value)
    return _kind(value), value


def _kind(value: Any) -> int:
    if isinstance(value, bool):
        return Type.BOOL
    if isinstance(value, float):
        return Type.FLOAT32
    if isinstance(value, str):
        return Type.STRING
    return Type.UINT64 if value >= 2**63 else Type.INT64
