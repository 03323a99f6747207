"""GGUF bytes for tests, right or wrong: any version, byte order, count and value.

Layout: the GGUF specification (ggml, docs/gguf.md). `gguf` makes a whole file; the methods of
LITTLE and BIG make its pieces, for files that break the rules.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

Pair = tuple[str, int, Any]


class Type(IntEnum):
    """The value types; a number beside them makes a file with an unknown one."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


CODES = dict(zip(sorted(set(Type) - {Type.STRING, Type.ARRAY}), "BbHhIif?Qqd"))


@dataclass(frozen=True)
class Pieces:
    """The parts of a file in one byte order, `order` as the struct module writes it."""

    order: str

    def number(self, code: str, *values: Any) -> bytes:
        """Numbers one after another, `code` being the letter of each in the struct module."""
        return struct.pack(f"{self.order}{len(values)}{code}", *values)

    def header(self, keys: int, *, version: int = 3, tensors: int = 0) -> bytes:
        """The first 24 bytes of a file."""
        return b"GGUF" + self.number("I", version) + self.number("Q", tensors, keys)

    def text(self, text: str | bytes) -> bytes:
        """A length and the bytes; raw bytes need not be UTF-8."""
        raw = text.encode() if isinstance(text, str) else text
        return self.number("Q", len(raw)) + raw

    def array_head(self, element: int, count: int) -> bytes:
        """The element type and the count, whether or not as many elements follow."""
        return self.number("I", element) + self.number("Q", count)

    def value(self, kind: int, value: Any) -> bytes:
        """A value; that of an array is a pair: the element type and the elements."""
        if kind == Type.STRING:
            return self.text(value)
        if kind != Type.ARRAY:
            return self.number(CODES[Type(kind)], value)
        element, elements = value
        if element in CODES:
            return self.array_head(element, len(elements)) + self.number(CODES[element], *elements)
        inner = b"".join(self.value(element, each) for each in elements)
        return self.array_head(element, len(elements)) + inner

    def pair(self, key: str | bytes, kind: int, value: Any) -> bytes:
        """A key with its value; a value given as bytes follows the type as it is."""
        raw = isinstance(value, bytes) and kind != Type.STRING
        return self.text(key) + self.number("I", kind) + (value if raw else self.value(kind, value))

    def tensor(self, name: str, *sizes: int, kind: int = 0) -> bytes:
        """One entry of the tensor list at offset 0, of type F32 unless it is of another kind."""
        shape = self.number("I", len(sizes)) + self.number("Q", *sizes)
        return self.text(name) + shape + self.number("I", kind) + self.number("Q", 0)


LITTLE = Pieces("<")
BIG = Pieces(">")


def gguf(
    pairs: Iterable[Pair] = (),
    *,
    version: int = 3,
    pieces: Pieces = LITTLE,
    tensors: Iterable[bytes] = (),
) -> bytes:
    """A good file: header, pairs, then the tensor entries that `Pieces.tensor` made."""
    pairs, tensors = list(pairs), list(tensors)
    header = pieces.header(len(pairs), version=version, tensors=len(tensors))
    return header + b"".join(pieces.pair(*each) for each in pairs) + b"".join(tensors)
