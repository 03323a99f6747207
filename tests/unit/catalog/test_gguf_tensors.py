"""How many parameters a model has: the tensor list of its file, right, cut or lying."""

from __future__ import annotations

import math
from io import BytesIO
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.catalog.gguf import GgufError, read_source
from app.catalog.gguf_source import WINDOW, Source
from app.catalog.gguf_tensors import parameter_count
from tests.fakes.gguf_writer import BIG, LITTLE, Pieces, Type, gguf

MANY = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
ARCH = ("general.architecture", Type.STRING, "llama")
ORDERS = pytest.mark.parametrize("pieces", [LITTLE, BIG], ids=["little", "big"])


def count(data: bytes) -> int:
    """The parameters of a file."""
    source = Source(BytesIO(data), len(data))
    return parameter_count(source, read_source(source).tensor_count)


def listed(*tensors: bytes, pieces: Pieces = LITTLE, announced: int | None = None) -> bytes:
    """A file of one key whose tensor list has these entries."""
    number = len(tensors) if announced is None else announced
    return pieces.header(1, tensors=number) + pieces.pair(*ARCH) + b"".join(tensors)


@ORDERS
@pytest.mark.parametrize(("shapes", "parameters"), [
    ([], 0), ([()], 1), ([(0,)], 0), ([(7,)], 7), ([(2, 3, 5, 7)], 210),
    ([(49152, 576), (576,), (576, 1536)], 49152 * 576 + 576 + 576 * 1536),
    ([(2**32, 2**30)], 2**62), ([(5,)] * 1000, 5000),
], ids=lambda value: str(value)[:30])
def test_the_elements_of_all_tensors_are_counted(
        pieces: Pieces, shapes: list[tuple[int, ...]], parameters: int) -> None:
    """Exactly, whatever the number of dimensions; one without any is a single number."""
    tensors = [pieces.tensor(f"blk.{number}.weight", *shape) for number, shape in enumerate(shapes)]
    assert count(gguf([ARCH], tensors=tensors, pieces=pieces)) == parameters


def test_a_list_longer_than_a_window_is_counted() -> None:
    """Also where the end of what is read at once falls into a name or a number."""
    for length in range(1, 60, 7):
        tensors = [LITTLE.tensor("n" * length, 3, 2)] * (2 * WINDOW // (length + 40))
        assert count(gguf([ARCH], tensors=tensors)) == 6 * len(tensors)


@ORDERS
def test_a_list_cut_anywhere_gives_no_number(pieces: Pieces) -> None:
    """Half a sum would be a wrong one."""
    tensors = [pieces.tensor("token_embd.weight", 32, 2), pieces.tensor("u", 4)]
    whole = gguf([ARCH], tensors=tensors, pieces=pieces)
    start = len(whole) - sum(map(len, tensors))
    assert count(whole) == 68
    for cut in range(start, len(whole)):
        with pytest.raises(GgufError, match="^the file ends inside the tensor list$"):
            count(whole[:cut])


def tensor(name_length: int = 0, dimensions: int = 1, sizes: tuple[int, ...] = (1,)) -> bytes:
    """An entry that may announce what it does not hold."""
    head = LITTLE.number("Q", name_length) + LITTLE.number("I", dimensions)
    return head + LITTLE.number("Q", *sizes) + bytes(12)


@pytest.mark.parametrize(("data", "message"), [
    (listed(announced=2**64 - 1), "more than 65536 tensors"),
    (listed(announced=65_537), "more than 65536 tensors"),
    (listed(announced=65_536), "the file ends inside the tensor list"),
    (listed(tensor(name_length=2**63)), "the name of a tensor is longer than 1024 bytes"),
    (listed(tensor(name_length=1025), bytes(2000)), "the name of a tensor is longer than"),
    (listed(tensor(name_length=1000)), "the file ends inside the tensor list"),
    (listed(tensor(dimensions=5, sizes=(1,) * 5)), "a tensor has more than 4 dimensions"),
    (listed(tensor(dimensions=2**32 - 1)), "a tensor has more than 4 dimensions"),
    (listed(tensor(sizes=(2**63,))), "more than 9223372036854775807 parameters"),
    (listed(tensor(dimensions=4, sizes=(2**64 - 1,) * 4)), "more than 9223372036854775807 par"),
    (listed(*[tensor(sizes=(2**62,))] * 2), "more than 9223372036854775807 parameters"),
], ids=lambda value: value if isinstance(value, str) else f"{len(value)}-bytes")
def test_a_list_that_lies_is_refused(data: bytes, message: str) -> None:
    """At once, with a few words that say why."""
    with pytest.raises(GgufError, match=f"^{message}"):
        count(data)


def outcome(data: bytes) -> int | str:
    """The number or the words of the error; anything else raised fails the test."""
    try:
        return count(data)
    except GgufError as error:
        return str(error)


SHAPES = st.lists(st.integers(0, 2**20), max_size=4)


@MANY
@given(st.lists(st.tuples(st.binary(max_size=70), SHAPES), max_size=20),
       st.sampled_from([LITTLE, BIG]))
def test_what_was_written_is_counted(tensors: list[Any], pieces: Pieces) -> None:
    """Any names and shapes, in any byte order."""
    made = [pieces.text(name) + pieces.number("I", len(shape)) + pieces.number("Q", *shape)
            + bytes(12) for name, shape in tensors]
    wanted = sum(math.prod(shape) for _, shape in tensors)
    data = listed(*made, pieces=pieces)
    assert outcome(data) == (
        wanted if wanted < 2**63 else "more than 9223372036854775807 parameters")


@MANY
@given(st.binary(max_size=200), st.integers(0, 6))
def test_any_bytes_give_a_number_or_one_error(data: bytes, tensors: int) -> None:
    """After a good start too."""
    found = outcome(listed(data, announced=tensors))
    assert isinstance(found, str) or 0 <= found < 2**63


EDITS = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 12), st.binary(max_size=12)),
    min_size=1, max_size=4)


@MANY
@given(SHAPES, EDITS)
def test_a_damaged_list(shape: list[int], edits: list[Any]) -> None:
    """A good list with bytes changed, removed or put in gives one of the two outcomes."""
    data = listed(*[LITTLE.tensor(f"t{number}", *shape) for number in range(5)])
    for place, removed, added in edits:
        at = place % (len(data) + 1)
        data = data[:at] + added + data[at + removed:]
    found = outcome(data)
    assert isinstance(found, str) or 0 <= found < 2**63
