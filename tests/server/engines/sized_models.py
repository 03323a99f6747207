"""Models of known sizes: their files say how much memory their engines will take."""

from __future__ import annotations

from collections.abc import Iterable

from tests.fakes.registry_home import gguf


def sized(layers: int) -> dict[str, bytes]:
    """The file of a model whose key-value cache grows with its layers; the file itself is small.

    A layer takes 2 KiB for each token of the context.
    """
    return {"model.gguf": gguf({
        "general.architecture": "llama", "llama.context_length": 4096,
        "llama.block_count": layers, "llama.embedding_length": 1024,
        "llama.attention.head_count": 16, "llama.attention.head_count_kv": 8})}


def small(names: Iterable[str]) -> dict[str, dict[str, bytes]]:
    """Models of the same small size."""
    return {name: sized(64) for name in names}
