"""The tensor list of a GGUF file: how many numbers the model is made of.

Layout: the GGUF specification (ggml, docs/gguf.md). The list follows the key-value section; the
tensors themselves are not looked at.
"""

import math

from app.catalog.gguf_source import GgufError, Source

MAX_TENSORS = 65_536  # in one file; the largest models have some thousands
MAX_NAME = 1024  # bytes; the specification allows 64
MAX_DIMENSIONS = 4  # as in ggml, which all readers are built on
MAX_ELEMENTS = 2**63 - 1  # what ggml can count
_SMALLEST = 24  # bytes: length of an empty name, no dimensions, type, offset
_TYPE_AND_OFFSET = 12


def parameter_count(source: Source, tensors: int) -> int:
    """The elements of all ``tensors`` tensors of the list that begins where the source is.

    Raises GgufError for a list that ends early or breaks a rule, never gives half a sum. Time and
    memory have a bound that does not grow with the file.
    """
    source.inside = "the tensor list"
    if tensors > MAX_TENSORS:
        raise GgufError(f"more than {MAX_TENSORS} tensors")
    source.require(tensors, _SMALLEST)
    total = sum(_elements(source) for _ in range(tensors))
    if total > MAX_ELEMENTS:
        raise GgufError(f"more than {MAX_ELEMENTS} parameters")
    return total


def _elements(source: Source) -> int:
    """How many elements the next tensor has; one without dimensions is a single number."""
    name = source.number("Q")
    if name > MAX_NAME:
        raise GgufError(f"the name of a tensor is longer than {MAX_NAME} bytes")
    source.skip(name)
    dimensions = source.number("I")
    if dimensions > MAX_DIMENSIONS:
        raise GgufError(f"a tensor has more than {MAX_DIMENSIONS} dimensions")
    elements: int = math.prod(source.numbers("Q", dimensions))
    source.skip(_TYPE_AND_OFFSET)
    return elements
