"""Arrays in GGUF metadata: left out or kept, and never in the way of the keys after them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from app.catalog.gguf import GgufError, read, read_from
from tests.fakes.gguf_writer import BIG, LITTLE, Pieces, Type, gguf

ORDERS = pytest.mark.parametrize("pieces", [LITTLE, BIG], ids=["little", "big"])
AFTER = ("after.it", Type.UINT32, 77)

ARRAYS = [
    (Type.UINT8, [0, 1, 255]),
    (Type.INT8, [-128, 127]),
    (Type.UINT16, [65535]),
    (Type.INT16, [-32768, 5]),
    (Type.UINT32, [4294967295]),
    (Type.INT32, [-2147483648]),
    (Type.FLOAT32, [1e-05, 0.1, -3.0]),
    (Type.BOOL, [True, False]),
    (Type.STRING, ["", "é", "x" * 300, "a\0b"]),
    (Type.UINT64, [18446744073709551615]),
    (Type.INT64, [-9223372036854775808]),
    (Type.FLOAT64, [1e-05, 9.999999747378752e-06]),
]


def values_of(data: bytes, arrays: bool) -> dict[str, Any]:
    return read_from(BytesIO(data), len(data), arrays).values


@ORDERS
@pytest.mark.parametrize(("element", "elements"), [*ARRAYS, *((kind, []) for kind, _ in ARRAYS)])
def test_an_array_of_each_type(pieces: Pieces, element: int, elements: list[Any]) -> None:
    """An array of any type, empty or not, is left out or returned as a list."""
    data = gguf([("it", Type.ARRAY, (element, elements)), AFTER], pieces=pieces)
    assert values_of(data, arrays=False) == {"after.it": 77}
    assert list(values_of(data, arrays=True).items()) == [("it", elements), ("after.it", 77)]


NESTED = [
    ((Type.ARRAY, []), []),
    ((Type.ARRAY, [(Type.UINT8, [])]), [[]]),
    ((Type.ARRAY, [(Type.UINT32, [1, 2]), (Type.STRING, ["a", ""])]), [[1, 2], ["a", ""]]),
    ((Type.ARRAY, [(Type.ARRAY, [(Type.INT8, [-1])]), (Type.BOOL, [True])]), [[[-1]], [True]]),
    (
        (Type.ARRAY, [(Type.ARRAY, [(Type.ARRAY, [(Type.STRING, ["deep"]), (Type.INT8, [2])])])]),
        [[[["deep"], [2]]]],
    ),
]


@ORDERS
@pytest.mark.parametrize(("written", "found"), NESTED)
def test_arrays_in_arrays_up_to_four_deep(pieces: Pieces, written: Any, found: Any) -> None:
    """Nested arrays are lists of lists in file order, or left out with the next key right."""
    data = gguf([("it", Type.ARRAY, written), AFTER], pieces=pieces)
    assert values_of(data, arrays=False) == {"after.it": 77}
    assert values_of(data, arrays=True) == {"it": found, "after.it": 77}


@pytest.mark.parametrize("arrays", [False, True])
@pytest.mark.parametrize("depth", [5, 20_001])
def test_deeper_nesting_is_refused(depth: int, arrays: bool) -> None:
    """Five levels are refused as twenty thousand are, whether arrays are wanted or not."""
    levels = LITTLE.array_head(Type.ARRAY, 1) * (depth - 1) + LITTLE.array_head(Type.UINT32, 0)
    data = LITTLE.header(1) + LITTLE.pair("a", Type.ARRAY, levels)
    with pytest.raises(GgufError, match="^arrays nested more than 4 deep$"):
        values_of(data, arrays)


@pytest.mark.parametrize("arrays", [False, True])
def test_too_many_arrays_are_refused(arrays: bool) -> None:
    """65536 arrays in a file are read, one more is refused."""
    empty: tuple[int, list[int]] = (Type.UINT8, [])
    within = gguf([("it", Type.ARRAY, (Type.ARRAY, [empty] * 65_535))])
    assert list(values_of(within, arrays)) == ["it"] * arrays
    beyond = gguf([("it", Type.ARRAY, (Type.ARRAY, [empty] * 65_536))])
    with pytest.raises(GgufError, match="^more than 65536 arrays$"):
        values_of(beyond, arrays)


@pytest.mark.parametrize("arrays", [False, True])
@pytest.mark.parametrize("element", [Type.STRING, Type.UINT8])
def test_too_many_elements_are_refused(tmp_path: Path, element: int, arrays: bool) -> None:
    """More elements than any vocabulary has are refused, unless they are numbers passed over."""
    path = tmp_path / "many.gguf"
    with path.open("wb") as file:
        file.write(LITTLE.header(1) + LITTLE.text("a") + LITTLE.number("I", Type.ARRAY))
        file.write(LITTLE.array_head(element, 4_194_305))
        file.truncate(64 * 1024 * 1024)
    if element == Type.UINT8 and not arrays:
        assert read(path, arrays).values == {}
    else:
        with pytest.raises(GgufError, match="^more than 4194304 array elements$"):
            read(path, arrays)


@pytest.fixture(scope="module")
def vocabulary() -> list[str]:
    """262,144 tokens of many lengths, some longer than a window of the reader."""
    tokens = [f"▁token{index}" * (index % 4) for index in range(262_144)]
    tokens[7], tokens[100_000] = "x" * 70_000, "y" * 200_000
    return tokens


@ORDERS
def test_a_large_vocabulary_is_passed_over_or_kept(pieces: Pieces, vocabulary: list[str]) -> None:
    """The keys after a quarter of a million texts are right, and the texts, if wanted, too."""
    scores = [float(-index) for index in range(len(vocabulary))]
    data = gguf(
        [
            ("general.architecture", Type.STRING, "gemma3"),
            ("tokenizer.ggml.tokens", Type.ARRAY, (Type.STRING, vocabulary)),
            ("tokenizer.ggml.scores", Type.ARRAY, (Type.FLOAT32, scores)),
            ("tokenizer.ggml.token_type", Type.ARRAY, (Type.INT32, [1] * len(vocabulary))),
            ("gemma3.context_length", Type.UINT32, 32768),
        ],
        pieces=pieces,
    )
    scalars = {"general.architecture": "gemma3", "gemma3.context_length": 32768}
    assert values_of(data, arrays=False) == scalars
    kept = values_of(data, arrays=True)
    assert kept.pop("tokenizer.ggml.tokens") == vocabulary
    assert kept.pop("tokenizer.ggml.scores") == scores
    assert kept.pop("tokenizer.ggml.token_type") == [1] * len(vocabulary)
    assert kept == scalars


@pytest.mark.parametrize("lead", range(9))
@pytest.mark.parametrize("length", [0, 1, 7, 8, 65_520, 65_528, 65_536])
def test_texts_that_meet_the_edge_of_a_window(lead: int, length: int) -> None:
    """Lengths that straddle two pieces of the file are passed over right, at every offset."""
    texts = ["x" * length, "ab", "", "y" * (length + 3)] * (2 if length > 8 else 4096)
    pairs = [("lead", Type.STRING, "-" * lead), ("it", Type.ARRAY, (Type.STRING, texts)), AFTER]
    assert values_of(gguf(pairs), arrays=False) == {"lead": "-" * lead, "after.it": 77}


@ORDERS
@pytest.mark.parametrize(("array", "length", "kept"), [
    *(((element, elements), len(elements), elements if element != Type.STRING else [])
      for element, elements in ARRAYS),
    *((written, len(written[1]), []) for written, _ in NESTED),
    ((Type.UINT16, [7] * 1024), 1024, [7] * 1024), ((Type.UINT16, [7] * 1025), 1025, [])])
def test_what_is_left_out_is_outlined(
        pieces: Pieces, array: Any, length: int, kept: list[Any]) -> None:
    """The length of every array is told, and the elements of a short one of numbers."""
    data = gguf([("it", Type.ARRAY, array), AFTER], pieces=pieces)
    found = read_from(BytesIO(data), len(data))
    assert found.arrays == {"it": (length, kept)}
    assert found.values == {"after.it": 77}


def test_what_is_kept_of_a_file_has_a_bound() -> None:
    """However many short arrays it has: 65,536 numbers, and the lengths of the others."""
    pairs = [(f"a{number}", Type.ARRAY, (Type.BOOL, [True] * 1024)) for number in range(70)]
    data = gguf([*pairs, ("last", Type.ARRAY, (Type.BOOL, []))])
    found = read_from(BytesIO(data), len(data)).arrays.values()
    assert [array.length for array in found] == [1024] * 70 + [0]
    assert [len(array.elements) for array in found] == [1024] * 64 + [0] * 7
