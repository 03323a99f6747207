"""GGUF files that hold all they announce, tensors too."""

from __future__ import annotations

from tests.fakes.gguf_writer import LITTLE, Pair, Type, gguf

_ALIGNMENT = 32


def whole(*pairs: Pair, elements: int = 64, fill: bytes = b"\1") -> bytes:
    """A llama of one F32 tensor, of which every byte is ``fill``: another fill, another file."""
    known: list[Pair] = [("general.architecture", Type.STRING, "llama"),
                         ("llama.context_length", Type.UINT32, 4096), *pairs]
    head = gguf(known, tensors=[LITTLE.tensor("t", elements)])
    return head + bytes(-len(head) % _ALIGNMENT) + fill * (4 * elements)


LARGE = whole(elements=500_000, fill=b"\2")  # two megabytes: many pieces of a download
SMALL = whole()
OTHER = whole(fill=b"\3")
PROJECTOR = whole(("clip.has_vision_encoder", Type.BOOL, True), fill=b"\4")
PARTS = {f"x-Q8_0-0000{n}-of-00003.gguf": whole(elements=64 * n, fill=bytes([n + 4]))
         for n in (1, 2, 3)}
