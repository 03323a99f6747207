"""What a good GGUF file says is what the reader returns."""

from __future__ import annotations

import math
import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from app.catalog.gguf import GgufError, Metadata, read, read_from
from tests.fakes.gguf_writer import BIG, LITTLE, Pieces, Type, gguf

ORDERS = pytest.mark.parametrize("pieces", [LITTLE, BIG], ids=["little", "big"])
VERSIONS = pytest.mark.parametrize("version", [2, 3])

SCALARS = [
    (Type.UINT8, 255),
    (Type.INT8, -128),
    (Type.UINT16, 65535),
    (Type.INT16, -32768),
    (Type.UINT32, 4294967295),
    (Type.INT32, -2147483648),
    (Type.FLOAT32, -0.15625),
    (Type.BOOL, True),
    (Type.BOOL, False),
    (Type.STRING, "grüße 👋 \0 end"),
    (Type.STRING, ""),
    (Type.UINT64, 18446744073709551615),
    (Type.INT64, -9223372036854775808),
    (Type.FLOAT64, 9.999999747378752e-06),
]


def parse(data: bytes, arrays: bool = False) -> Metadata:
    return read_from(BytesIO(data), len(data), arrays)


def test_scalars_come_in_file_order_and_the_array_is_left_out(tmp_path: Path) -> None:
    """A small model file gives its four scalars as they were written, without the vocabulary."""
    path = tmp_path / "model.gguf"
    path.write_bytes(
        gguf(
            [
                ("general.architecture", Type.STRING, "llama"),
                ("general.size_label", Type.STRING, "7B"),
                ("llama.context_length", Type.UINT32, 32768),
                ("tokenizer.ggml.tokens", Type.ARRAY, (Type.STRING, ["a", "bc"])),
                ("llama.rope.freq_base", Type.FLOAT32, 10000.0),
            ]
        )
    )
    metadata = read(path)
    assert list(metadata.values.items()) == [
        ("general.architecture", "llama"),
        ("general.size_label", "7B"),
        ("llama.context_length", 32768),
        ("llama.rope.freq_base", 10000.0),
    ]
    assert [type(value) for value in metadata.values.values()] == [str, str, int, float]


@pytest.mark.parametrize("data", [b"GGML", b"", b"GGU", b"\0" * 64, b"gguf" + b"\0" * 64])
def test_other_content_is_called_not_a_gguf_file(tmp_path: Path, data: bytes) -> None:
    """A file without the four first bytes of GGUF is refused in exactly these words."""
    path = tmp_path / "other.gguf"
    path.write_bytes(data)
    with pytest.raises(GgufError) as caught:
        read(str(path))
    assert str(caught.value) == "not a GGUF file"


@ORDERS
@VERSIONS
@pytest.mark.parametrize("arrays", [False, True])
def test_every_scalar_type_keeps_its_value(pieces: Pieces, version: int, arrays: bool) -> None:
    """Both versions and byte orders give every type's extreme values exactly."""
    pairs = [(f"key.{index}", *scalar) for index, scalar in enumerate(SCALARS)]
    metadata = parse(gguf(pairs, version=version, pieces=pieces), arrays)
    assert list(metadata.values.items()) == [(key, value) for key, _, value in pairs]
    assert [type(value) for value in metadata.values.values()] == [type(v) for _, v in SCALARS]
    assert metadata.version == version
    assert metadata.byte_order == ("little" if pieces is LITTLE else "big")


@ORDERS
def test_tensors_are_counted(pieces: Pieces) -> None:
    """The announced number of tensors is returned, and a file that lists them is complete."""
    tensors = [pieces.tensor("a", 2, 3), pieces.tensor("b")]
    metadata = parse(gguf([("k", Type.BOOL, True)], pieces=pieces, tensors=tensors))
    assert (metadata.tensor_count, metadata.complete) == (2, True)


@pytest.mark.parametrize(
    ("tensors", "rest", "complete"),
    [(0, 0, True), (1, 23, False), (1, 24, True), (2, 47, False), (2**64 - 1, 500, False)],
)
def test_a_file_too_short_for_its_tensor_list_is_marked(
    tensors: int, rest: int, complete: bool
) -> None:
    """The metadata of a file cut after it is returned, with a mark that the file is not whole."""
    metadata = parse(LITTLE.header(0, tensors=tensors) + bytes(rest))
    assert (metadata.tensor_count, metadata.complete) == (tensors, complete)


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        (1e-05, "1e-05"),
        (1e-06, "1e-06"),
        (0.1, "0.1"),
        (-1.1, "-1.1"),
        (10000.0, "10000.0"),
        (500000.0, "500000.0"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1 / 3, "0.33333334"),
        (1003.5039672851562, "1003.50397"),
        (16777216.0, "16777216.0"),
        (3.4028234663852886e38, "3.4028235e+38"),
        (2.0**-126, "1.1754944e-38"),
        (2.0**-149, "1e-45"),
        (2.0**87, "1.5474251e+26"),
        (2.0**90, "1.2379401e+27"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_a_float32_reads_as_people_wrote_it(raw: float, seen: str) -> None:
    """A float32 becomes the float with the shortest text, alone and in an array."""
    pairs = [("one", Type.FLOAT32, raw), ("many", Type.ARRAY, (Type.FLOAT32, [raw, raw]))]
    values = parse(gguf(pairs), arrays=True).values
    assert [repr(values["one"]), *map(repr, values["many"])] == [seen] * 3


def test_a_float64_is_not_shortened() -> None:
    """A float64 that looks like a float32 keeps all its digits."""
    values = parse(gguf([("k", Type.FLOAT64, 9.999999747378752e-06)])).values
    assert values == {"k": 9.999999747378752e-06}


@pytest.mark.parametrize("byte", [1, 2, 128, 255])
def test_any_bool_byte_but_zero_is_true(byte: int) -> None:
    """A bool byte the format forbids is true, and the keys after it are right."""
    array = LITTLE.array_head(Type.BOOL, 2) + bytes([byte, 0])
    data = LITTLE.header(3) + LITTLE.pair("flag", Type.BOOL, bytes([byte]))
    data += LITTLE.pair("flags", Type.ARRAY, array) + LITTLE.pair("after", Type.UINT8, 7)
    values = parse(data, arrays=True).values
    assert values == {"flag": True, "flags": [True, False], "after": 7}
    assert values["flag"] is True


@pytest.mark.parametrize(
    ("raw", "text"),
    [(b"a\xffb", "a\ufffdb"), (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"), (b"\xe2\x82", "\ufffd")],
)
def test_bytes_that_are_not_utf8_are_replaced(raw: bytes, text: str) -> None:
    """Invalid UTF-8 in a key, a value or an array becomes U+FFFD and never fails."""
    array = (Type.STRING, [raw])
    data = LITTLE.header(2) + LITTLE.pair(raw, Type.STRING, raw)
    data += LITTLE.pair("array", Type.ARRAY, array)
    assert parse(data, arrays=True).values == {text: text, "array": [text]}


@pytest.mark.parametrize("kind", [Type.UINT8, Type.ARRAY])
def test_a_repeated_key_is_refused(kind: int) -> None:
    """Two values for one key are an error, also when one of them is an array that is left out."""
    value: Any = (Type.UINT8, [1]) if kind == Type.ARRAY else 1
    pairs = [("a.key", kind, value), ("other", Type.UINT8, 1), ("a.key", Type.UINT8, 2)]
    with pytest.raises(GgufError, match=r"^the key 'a\.key' is repeated$"):
        parse(gguf(pairs))


def test_a_key_may_be_as_long_as_the_format_allows() -> None:
    """65535 bytes of key are read, one more is refused."""
    assert list(parse(gguf([("k" * 65535, Type.UINT8, 1)])).values) == ["k" * 65535]
    with pytest.raises(GgufError, match="^a key is longer than 65535 bytes$"):
        parse(gguf([("k" * 65536, Type.UINT8, 1)]))


def test_an_empty_key_and_no_keys_are_read() -> None:
    """The shortest pair and the shortest file there can be are no errors."""
    assert parse(gguf([("", Type.UINT8, 1)])).values == {"": 1}
    assert parse(gguf()) == Metadata(3, "little", 0, {}, True)


@pytest.mark.parametrize("size", [65_000, 65_536, 65_537, 200_000, 3_000_000])
def test_a_text_longer_than_a_window_is_whole(size: int) -> None:
    """A long text is read across the pieces the file is read in, and the next key is right."""
    text = "".join(chr(0x100 + index % 5000) for index in range(size // 2))
    pairs = [("long", Type.STRING, text), ("after", Type.UINT32, 5)]
    assert parse(gguf(pairs)).values == {"long": text, "after": 5}


def test_a_quiet_nan_is_nan_in_both_widths() -> None:
    """NaN and infinities come as floats; leaving them out is for whoever writes JSON."""
    data = LITTLE.header(2) + LITTLE.pair("single", Type.FLOAT32, bytes.fromhex("0000c07f"))
    data += LITTLE.pair("double", Type.FLOAT64, struct.pack("<d", math.nan))
    assert all(math.isnan(value) for value in parse(data).values.values())
