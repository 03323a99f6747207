"""Arrays in GGUF metadata: passed over, or read into lists."""

import struct
from typing import Any, NamedTuple

from app.catalog.gguf_float32 import shortest
from app.catalog.gguf_source import ARRAY, FLOAT32, NUMBER_CODES, TEXT, GgufError, Source

MAX_DEPTH = 4  # llama.cpp refuses any array of arrays
MAX_ARRAYS = 65_536  # in one file, the arrays in arrays included
MAX_ELEMENTS = 4_194_304  # texts passed over or elements kept in one file; 1.5 million occur
SHORT = 1024  # numbers; an array with one for each layer of a model is shorter
MAX_SHORT = 65_536  # numbers in the short arrays of one file; known files have a few hundred
_HEAD = 12  # bytes: the element type and the count
_AT_ONCE = 4096  # numbers unpacked in one go

_Pending = tuple[list[Any], int]  # an array that is not filled yet, and its depth


class Array(NamedTuple):
    """How many elements an array has, and the elements themselves where they are kept."""

    length: int
    elements: list[Any]


class ArrayReader:
    """Takes the arrays out of one file.

    With `keep` all elements are kept; without it those of short arrays of numbers. Too many
    arrays or elements are refused, so that time and memory have a bound that does not grow with
    the file. Nothing recurses.
    """

    def __init__(self, source: Source, keep: bool) -> None:
        self._source = source
        self._keep = keep
        self._arrays_left = MAX_ARRAYS
        self._elements_left = MAX_ELEMENTS
        self._short_left = MAX_SHORT

    def read(self) -> Array:
        """The next array, an array in it as a list in the list; raises GgufError."""
        self._charge_arrays(1)
        outermost: list[Any] = []
        pending: list[_Pending] = []
        length = self._one(outermost, 1, pending)
        nested = bool(pending)
        while pending:
            array, depth = pending.pop()
            self._one(array, depth, pending)
        return Array(length, [] if nested and not self._keep else outermost)

    def _one(self, array: list[Any], depth: int, pending: list[_Pending]) -> int:
        """Fills one array, but for the arrays in it, which become pending; its length."""
        element, count = self._source.value_type(), self._source.number("Q")
        if element == ARRAY:
            self._nest(array, count, depth)
            pending.extend((inner, depth + 1) for inner in reversed(array))
        elif element == TEXT:
            self._texts(array, count)
        elif self._keep or depth == 1 and self._is_short(count):
            self._numbers(array, element, count)
        else:
            self._source.skip(count, struct.calcsize("<" + NUMBER_CODES[element]))
        return int(count)

    def _nest(self, array: list[Any], count: int, depth: int) -> None:
        if depth == MAX_DEPTH:
            raise GgufError(f"arrays nested more than {MAX_DEPTH} deep")
        self._source.require(count, _HEAD)
        self._charge_arrays(count)
        array.extend([] for _ in range(count))

    def _texts(self, array: list[Any], count: int) -> None:
        self._source.require(count, 8)
        self._charge_elements(count)
        if self._keep:
            array.extend(self._source.text() for _ in range(count))
        else:
            self._source.skip_texts(count)

    def _numbers(self, array: list[Any], element: int, count: int) -> None:
        code = NUMBER_CODES[element]
        self._source.require(count, struct.calcsize("<" + code))
        self._charge_elements(count)
        for done in range(0, count, _AT_ONCE):
            numbers = self._source.numbers(code, min(_AT_ONCE, count - done))
            array.extend(map(shortest, numbers) if element == FLOAT32 else numbers)

    def _is_short(self, count: int) -> bool:
        if count > min(SHORT, self._short_left):
            return False
        self._short_left -= count
        return True

    def _charge_arrays(self, count: int) -> None:
        self._arrays_left -= count
        if self._arrays_left < 0:
            raise GgufError(f"more than {MAX_ARRAYS} arrays")

    def _charge_elements(self, count: int) -> None:
        self._elements_left -= count
        if self._elements_left < 0:
            raise GgufError(f"more than {MAX_ELEMENTS} array elements")
