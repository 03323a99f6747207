"""A projector that llama.cpp loads: it makes of any picture 16 tokens of no meaning.

Layout: the GGUF specification (ggml, docs/gguf.md), and what llama.cpp's tools/mtmd/clip.cpp asks
of a LLaVA projector, as small as it can be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tests.fakes.gguf_writer import LITTLE, Pair, Type

PICTURE_TOKENS = 16
_WIDTH, _INNER, _PATCH, _PICTURE = 32, 64, 16, 64  # the picture has 4 times 4 patches
_ALIGNMENT = 32

Sizes = tuple[int, ...]


def llava_projector(width: int) -> bytes:
    """The file for a model whose tokens are vectors of `width` numbers."""
    tensors = dict(_tensors(width))
    pairs = _pairs(width)
    head = LITTLE.header(len(pairs), tensors=len(tensors))
    head += b"".join(LITTLE.pair(*pair) for pair in pairs)
    data = b""
    for name, sizes in tensors.items():
        shape = LITTLE.number("I", len(sizes)) + LITTLE.number("Q", *sizes)
        head += LITTLE.text(name) + shape + LITTLE.number("I", 0) + LITTLE.number("Q", len(data))
        data += _aligned(LITTLE.number("f", *_numbers(math.prod(sizes))))
    return _aligned(head) + data


def _pairs(width: int) -> list[Pair]:
    vision = {"image_size": _PICTURE, "patch_size": _PATCH, "embedding_length": _WIDTH,
              "feed_forward_length": _INNER, "block_count": 1, "projection_dim": width,
              "attention.head_count": 2}
    half = (Type.FLOAT32, [0.5] * 3)
    return [
        ("general.architecture", Type.STRING, "clip"),
        ("clip.has_vision_encoder", Type.BOOL, True),
        ("clip.projector_type", Type.STRING, "mlp"),
        ("clip.use_gelu", Type.BOOL, True),
        *((f"clip.vision.{key}", Type.UINT32, value) for key, value in vision.items()),
        ("clip.vision.attention.layer_norm_epsilon", Type.FLOAT32, 1e-6),
        ("clip.vision.image_mean", Type.ARRAY, half),
        ("clip.vision.image_std", Type.ARRAY, half),
    ]


def _tensors(width: int) -> Iterator[tuple[str, Sizes]]:
    yield "v.patch_embd.weight", (_PATCH, _PATCH, 3, _WIDTH)
    yield "v.position_embd.weight", (_WIDTH, PICTURE_TOKENS)
    for name in ("ln1", "ln2"):
        yield from _pair(f"v.blk.0.{name}", _WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        yield from _pair(f"v.blk.0.{name}", _WIDTH, _WIDTH)
    yield from _pair("v.blk.0.ffn_up", _WIDTH, _INNER)
    yield from _pair("v.blk.0.ffn_down", _INNER, _WIDTH)
    yield from _pair("mm.0", _WIDTH, width)
    yield from _pair("mm.2", width, width)


def _pair(name: str, *sizes: int) -> Iterator[tuple[str, Sizes]]:
    yield f"{name}.weight", sizes
    yield f"{name}.bias", sizes[-1:]


def _numbers(count: int) -> list[float]:
    return [(index * 37 % 101 - 50) / 2500 for index in range(count)]


def _aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
