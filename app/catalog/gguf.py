"""The metadata at the start of a GGUF file: what a model says about itself.

Layout: the GGUF specification (ggml, docs/gguf.md). Versions 2 and 3, both byte orders. Only the
key-value section is read, in small pieces and without a memory map, which would end the process
when somebody truncates the file. ``gguf_tensors`` goes on from there.
"""

import os
import stat
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal

from app.catalog.gguf_float32 import shortest
from app.catalog.gguf_arrays import Array, ArrayReader
from app.catalog.gguf_source import ARRAY, FLOAT32, NUMBER_CODES, TEXT, GgufError, Source

__all__ = ["Array", "GgufError", "Metadata", "open_file", "read", "read_from", "read_source"]

ByteOrder = Literal["little", "big"]
MAX_KEYS = 65_536  # known files have less than a hundred
_VERSIONS = (2, 3)
_SMALLEST_PAIR = 13  # bytes: length of an empty key, type, one-byte value
_SMALLEST_TENSOR = 24  # bytes: length of an empty name, no dimensions, type, offset


@dataclass(frozen=True)
class Metadata:
    """What the header and the key-value section of one file say.

    `values` is in file order. Integers and float64 are exact; a float32 is the float with the
    shortest text; NaN and infinities stay; any bool byte but 0 is true; bytes that are not UTF-8
    are U+FFFD. Arrays are left out unless they were asked for; then they are lists. `arrays` has
    the length of each in any case, and the elements of those of 1,024 numbers at most.
    `complete` is False when what follows is too short even for the tensor list that is announced;
    True does not promise that the tensors themselves are whole.
    """

    version: int
    byte_order: ByteOrder
    tensor_count: int
    values: dict[str, Any]
    complete: bool
    arrays: dict[str, Array] = field(default_factory=dict)


def read(path: str | os.PathLike[str], arrays: bool = False) -> Metadata:
    """The metadata of the file at `path`; `arrays` keeps the arrays too.

    Raises GgufError for anything but a readable GGUF file, and OSError when the file cannot be
    opened or read. Never blocks on a pipe or a device. Looks at the first 128 MiB at most; a file
    cut short meanwhile gives an error, never half a value.
    """
    with open_file(path) as file:
        return read_from(file, os.fstat(file.fileno()).st_size, arrays)


def read_from(file: BinaryIO, size: int, arrays: bool = False) -> Metadata:
    """As `read`, for an open file of `size` bytes, which must be seekable and stays open."""
    return read_source(Source(file, size), arrays)


def read_source(source: Source, arrays: bool = False) -> Metadata:
    """As `read`, for a source at its start; it is at the start of the tensor list then."""
    version, order = _version(source)
    tensor_count = source.number("Q")
    found = _values(source, source.number("Q"), arrays)
    complete = source.left >= tensor_count * _SMALLEST_TENSOR
    outlines = {key: value for key, value in found.items() if isinstance(value, Array)}
    values = {key: value.elements if isinstance(value, Array) else value
              for key, value in found.items() if arrays or key not in outlines}
    return Metadata(version, order, tensor_count, values, complete, outlines)


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, open for reading; whoever gets it closes it.

    Raises GgufError for anything that is no regular file, and OSError. Never blocks.
    """
    try:
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except ValueError as error:  # a zero byte or half a surrogate pair in the name
        raise GgufError("not a file name") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise GgufError("not a regular file")
    return os.fdopen(descriptor, "rb")


def _version(source: Source) -> tuple[int, ByteOrder]:
    if source.left < 4 or source.take(4) != b"GGUF":
        raise GgufError("not a GGUF file")
    raw = source.take(4)
    little, big = int.from_bytes(raw, "little"), int.from_bytes(raw, "big")
    if little in _VERSIONS:
        return little, "little"
    if big in _VERSIONS:
        source.expect_big_endian()
        return big, "big"
    raise GgufError(f"GGUF version {min(little, big)} is not supported")


def _values(source: Source, count: int, arrays: bool) -> dict[str, Any]:
    source.inside = "the metadata"
    source.require(count, _SMALLEST_PAIR)
    if count > MAX_KEYS:
        raise GgufError(f"more than {MAX_KEYS} keys")
    reader = ArrayReader(source, keep=arrays)
    values: dict[str, Any] = {}
    seen: set[str] = set()
    for _ in range(count):
        source.inside = "the metadata"
        key = source.key()
        if key in seen:  # llama.cpp refuses such a file; taking either value would be a guess
            raise GgufError(f"the key {_shown(key)} is repeated")
        seen.add(key)
        source.inside = f"the value of {_shown(key)}"
        kind = source.value_type()
        values[key] = reader.read() if kind == ARRAY else _scalar(source, kind)
    return values


def _scalar(source: Source, kind: int) -> Any:
    if kind == TEXT:
        return source.text()
    value = source.number(NUMBER_CODES[kind])
    return shortest(value) if kind == FLOAT32 else value


def _shown(key: str) -> str:
    return repr(key if len(key) <= 80 else key[:80] + "…")
