"""The tensor list of a GGUF file: how many numbers the model is made of, and where it ends.

Layout: the GGUF specification (ggml, docs/gguf.md). The list follows the key-value section; the
tensors themselves are not looked at.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.catalog.gguf_source import GgufError, Source

MAX_TENSORS = 65_536  # in one file; the largest models have some thousands
MAX_NAME = 1024  # bytes; the specification allows 64
MAX_DIMENSIONS = 4  # as in ggml, which all readers are built on
MAX_ELEMENTS = 2**63 - 1  # what ggml can count
_SMALLEST = 24  # bytes: length of an empty name, no dimensions, type, offset
_ALIGNMENT = 32  # bytes, unless general.alignment says otherwise
# Elements of a block and its bytes, by the number of the type (ggml, src/ggml.c, type_traits).
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    9: (32, 40), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
    21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8),
    28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36),
    41: (128, 18),
}
# What ggml calls these types.
_NAMES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1",
    10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS",
    17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
    24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0",
    35: "TQ2_0", 39: "MXFP4", 40: "NVFP4", 41: "Q1_0",
}


@dataclass(frozen=True)
class Tensor:
    """One tensor: ``kind`` is the number of its type, ``offset`` in bytes from the data's begin."""

    raw_name: bytes
    shape: tuple[int, ...]
    kind: int
    offset: int

    @property
    def name(self) -> str:
        """Its name; bytes that are not UTF-8 are U+FFFD."""
        return self.raw_name.decode("utf-8", "replace")

    @property
    def type(self) -> str:
        """What ggml calls its type, the number itself where that is not known."""
        return _NAMES.get(self.kind, str(self.kind))

    @cached_property
    def elements(self) -> int:
        """How many numbers it holds; one without dimensions is a single number."""
        return math.prod(self.shape)

    @property
    def end(self) -> int:
        """Where its data ends at least: of a type that is not known, where it begins."""
        block, size = _BLOCKS.get(self.kind, (1, 0))
        return self.offset + self.elements // block * size


def parameter_count(source: Source, tensors: int) -> int:
    """The elements of all ``tensors`` tensors of the list that begins where the source is.

    Raises GgufError for a list that ends early or breaks a rule, never gives half a sum. Time and
    memory have a bound that does not grow with the file.
    """
    total = sum(tensor.elements for tensor in read(source, tensors))
    if total > MAX_ELEMENTS:
        raise GgufError(f"more than {MAX_ELEMENTS} parameters")
    return total


def data_end(source: Source, tensors: int, alignment: object) -> int:
    """How many bytes the file has at least, by the tensor list that begins where the source is.

    ``alignment`` is what the file says under general.alignment. Raises GgufError.
    """
    found = list(read(source, tensors))
    return end_of(found, source.position, alignment)


def end_of(tensors: Sequence[Tensor], begin: int, alignment: object) -> int:
    """How many bytes a file with these tensors has at least whose list ends at ``begin``."""
    ends = [tensor.end for tensor in tensors]
    step = alignment if isinstance(alignment, int) and alignment > 0 else _ALIGNMENT
    return -(-begin // step) * step + max(ends) if ends else begin


def read(source: Source, count: int) -> Iterator[Tensor]:
    """The tensors of the list that begins where the source is; raises GgufError on the way."""
    source.inside = "the tensor list"
    if count > MAX_TENSORS:
        raise GgufError(f"more than {MAX_TENSORS} tensors")
    source.require(count, _SMALLEST)
    for _ in range(count):
        yield _tensor(source)


def _tensor(source: Source) -> Tensor:
    name = source.number("Q")
    if name > MAX_NAME:
        raise GgufError(f"the name of a tensor is longer than {MAX_NAME} bytes")
    raw_name = source.take(name)
    dimensions = source.number("I")
    if dimensions > MAX_DIMENSIONS:
        raise GgufError(f"a tensor has more than {MAX_DIMENSIONS} dimensions")
    shape = source.numbers("Q", dimensions)
    return Tensor(raw_name, shape, source.number("I"), source.number("Q"))
