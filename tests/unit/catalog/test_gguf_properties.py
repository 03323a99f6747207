"""Properties of the GGUF reader over generated files."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.catalog.gguf import GgufError, Metadata, read_from
from app.catalog.gguf_float32 import shortest
from tests.fakes.gguf_writer import BIG, CODES, LITTLE, Pieces, Type, gguf

MANY = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
INTEGERS = {
    kind: st.integers(low, high)
    for bits, unsigned, signed in [(8, 0, 1), (16, 2, 3), (32, 4, 5), (64, 10, 11)]
    for kind, low, high in [
        (unsigned, 0, 2**bits - 1), (signed, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    ]
}
TEXTS = st.text(max_size=40)
ELEMENTS: dict[int, st.SearchStrategy[Any]] = {
    **INTEGERS,
    Type.FLOAT32: st.floats(width=32),
    Type.FLOAT64: st.floats(),
    Type.BOOL: st.booleans(),
    Type.STRING: TEXTS,
}


def arrays_of(depth: int) -> st.SearchStrategy[Any]:
    """The writer's pairs of element type and elements, at most `depth` levels of them."""
    flat = st.one_of(
        *(st.tuples(st.just(kind), st.lists(each, max_size=6)) for kind, each in ELEMENTS.items())
    )
    if depth == 1:
        return flat
    inner = st.lists(arrays_of(depth - 1), max_size=3)
    return st.one_of(flat, st.tuples(st.just(int(Type.ARRAY)), inner))


VALUES = st.one_of(
    *(st.tuples(st.just(kind), each) for kind, each in ELEMENTS.items()),
    st.tuples(st.just(int(Type.ARRAY)), arrays_of(4)),
)
PAIRS = st.dictionaries(TEXTS, VALUES, max_size=8).map(
    lambda found: [(key, *typed) for key, typed in found.items()]
)


def outcome(data: bytes, arrays: bool) -> Metadata | str:
    """The metadata or the words of the error; anything else raised fails the test."""
    try:
        return read_from(BytesIO(data), len(data), arrays)
    except GgufError as error:
        return str(error)


def same_in_both_modes(data: bytes) -> None:
    """Passing arrays over ends as keeping them does: same error, or same values without them."""
    without, kept = outcome(data, arrays=False), outcome(data, arrays=True)
    if isinstance(kept, Metadata):
        assert isinstance(without, Metadata), without
        scalars = {key: v for key, v in kept.values.items() if not isinstance(v, list)}
        assert repr(without.values) == repr(scalars)  # as text, because NaN is not itself
        assert without.complete == kept.complete
    else:
        assert without == kept


def expected(kind: int, value: Any) -> Any:
    if kind == Type.ARRAY:
        return [expected(value[0], each) for each in value[1]]
    return shortest(value) if kind == Type.FLOAT32 else value


@MANY
@given(PAIRS, st.sampled_from([LITTLE, BIG]), st.sampled_from([2, 3]))
def test_what_was_written_is_read(pairs: list[Any], pieces: Pieces, version: int) -> None:
    """Any keys and values come back in order and exactly, in any version and byte order."""
    data = gguf(pairs, pieces=pieces, version=version)
    wanted = {key: expected(kind, value) for key, kind, value in pairs}
    kept = outcome(data, arrays=True)
    assert isinstance(kept, Metadata)
    assert repr(list(kept.values.items())) == repr(list(wanted.items()))
    same_in_both_modes(data)


@MANY
@given(st.binary(max_size=300))
@example(b"GGUF")
def test_any_bytes_give_metadata_or_one_error(data: bytes) -> None:
    """Arbitrary bytes, after a good start too, never end in anything but the two outcomes."""
    same_in_both_modes(data)
    same_in_both_modes(b"GGUF\3\0\0\0" + data)
    same_in_both_modes(LITTLE.header(1) + data)


PARTS = st.one_of(
    st.sampled_from([*range(14), 99]).map(lambda number: struct.pack("<I", number)),
    st.sampled_from([0, 1, 2, 3, 8, 40, 2**31, 2**61, 2**63, 2**64 - 1]).map(
        lambda number: struct.pack("<Q", number)
    ),
    TEXTS.map(LITTLE.text),
    st.binary(max_size=9),
)


@MANY
@given(st.integers(0, 4), st.lists(PARTS, max_size=30))
def test_plausible_pieces_in_any_order(keys: int, parts: list[bytes]) -> None:
    """Types, lengths and texts put together without sense give one of the two outcomes."""
    same_in_both_modes(LITTLE.header(keys) + b"".join(parts))


EDITS = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 12), st.binary(max_size=12)),
    min_size=1, max_size=4,
)


@MANY
@given(PAIRS, st.sampled_from([LITTLE, BIG]), EDITS)
def test_a_damaged_file(pairs: list[Any], pieces: Pieces, edits: list[Any]) -> None:
    """A good file with bytes changed, removed or put in gives one of the two outcomes."""
    data = gguf(pairs, pieces=pieces, tensors=[pieces.tensor("t", 3)])
    for place, removed, added in edits:
        at = place % (len(data) + 1)
        data = data[:at] + added + data[at + removed:]
    same_in_both_modes(data)


@MANY
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_shortened_float32_is_the_same_float32(value: float) -> None:
    """The shortened float is the same float32, and its text is no longer than before."""
    short = shortest(value)
    assert struct.pack("<f", short) == struct.pack("<f", value)
    assert len(repr(short)) <= len(repr(value))


def test_every_number_type_has_its_struct_letter() -> None:
    """The fake writer and the format agree about the size of every number."""
    sizes = {kind: struct.calcsize("<" + code) for kind, code in CODES.items()}
    assert sizes == {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
