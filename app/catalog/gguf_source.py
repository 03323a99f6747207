"""The bytes of a GGUF file: read in windows, never past the end, and never too many of them.

The byte layout is that of the GGUF specification (ggml, docs/gguf.md).
"""

import struct
from typing import Any, BinaryIO, Literal

WINDOW = 64 * 1024
MAX_SECTION = 128 * 1024 * 1024  # bytes; the largest vocabularies in use need about 20 MiB
MAX_TEXT = 32 * 1024 * 1024  # bytes of keys and kept texts in one file; a chat template has 50 KiB
MAX_KEY = 65535  # bytes, by the specification

FLOAT32, TEXT, ARRAY = 6, 8, 9
NUMBER_CODES = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", FLOAT32: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}


class GgufError(ValueError):
    """The file is no readable GGUF; the message says why in a few words."""


class Source:
    """A file read from its start, of which `size` bytes are believed.

    Every method raises GgufError where the file is too short for what it announces, also when it
    became shorter while it was read. The file must be seekable; whoever opened it closes it.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.inside = "the header"  # what is being read: the subject of the error messages
        self._file = file
        self._size = size
        self._end = min(size, MAX_SECTION)
        self._order: Literal["<", ">"] = "<"
        self._window = b""
        self._window_start = 0
        self._at = 0  # within the window, or beyond it after a skip
        self._text_left = MAX_TEXT

    def expect_big_endian(self) -> None:
        """From here on every number has its high byte first."""
        self._order = ">"

    @property
    def position(self) -> int:
        """How many bytes of the file come before the place reached."""
        return self._window_start + self._at

    @property
    def left(self) -> int:
        """How many bytes of the file follow the place reached."""
        return self._size - self.position

    def require(self, count: int, size: int = 1) -> None:
        """Raises GgufError unless `count` things of at least `size` bytes can still follow."""
        if count * size > self._end - self._window_start - self._at:
            raise self._too_short()

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if self._at + count > len(self._window):
            self._load(count)
        start = self._at
        self._at = start + count
        return self._window[start:self._at]

    def skip(self, count: int, size: int = 1) -> None:
        """Passes over `count` things of `size` bytes without reading them."""
        self.require(count, size)
        self._at += count * size

    def number(self, code: str) -> Any:
        """The next number, `code` being its letter in the struct module."""
        form = self._order + code
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def numbers(self, code: str, count: int) -> tuple[Any, ...]:
        """The next `count` numbers; meant for a few thousand at once."""
        form = f"{self._order}{count}{code}"
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def value_type(self) -> int:
        """The next value type, one the specification knows."""
        number: int = self.number("I")
        if number not in NUMBER_CODES and number not in (TEXT, ARRAY):
            raise GgufError(f"unknown value type {number}")
        return number

    def key(self) -> str:
        """The next key, decoded as text is."""
        length = self.number("Q")
        if length > MAX_KEY:
            raise GgufError(f"a key is longer than {MAX_KEY} bytes")
        return self._decode(length)

    def text(self) -> str:
        """The next text; bytes that are not UTF-8 become U+FFFD."""
        return self._decode(self.number("Q"))

    def skip_texts(self, count: int) -> None:
        """Passes over `count` texts, reading little more than their lengths."""
        self.require(count, 8)
        while count:
            self.require(8)
            if self._at + 8 > len(self._window):
                self._load(8)
            count = self._skip_texts_in_window(count)
            self.require(0)

    def _skip_texts_in_window(self, count: int) -> int:
        # A quarter of a million texts pass through here: about 80 ns each, bound to local names.
        length_at = struct.Struct(self._order + "Q").unpack_from
        window, at, remaining = self._window, self._at, count
        try:
            for remaining in range(count, 0, -1):
                at += length_at(window, at)[0] + 8
            remaining = 0
        except (struct.error, OverflowError):
            pass  # the next length lies beyond the window, or beyond any file
        self._at = at
        return remaining

    def _decode(self, length: int) -> str:
        self.require(length)
        self._text_left -= length
        if self._text_left < 0:
            raise GgufError(f"more than {MAX_TEXT >> 20} MiB of text")
        return self.take(length).decode("utf-8", "replace")

    def _load(self, count: int) -> None:
        self.require(count)
        self._window_start += self._at
        self._at = 0
        self._file.seek(self._window_start)
        self._window = self._file.read(min(max(count, WINDOW), self._end - self._window_start))
        if len(self._window) < count:
            raise GgufError(f"the file ends inside {self.inside}")

    def _too_short(self) -> GgufError:
        if self._end < self._size:
            return GgufError(f"{self.inside} does not end in the first {MAX_SECTION >> 20} MiB")
        return GgufError(f"the file ends inside {self.inside}")
