"""A GGUF file that lies or is cut gives one short error, at once and in little memory."""

from __future__ import annotations

import math
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from app.catalog.gguf import GgufError, Metadata, read, read_from
from tests.fakes.gguf_writer import BIG, LITTLE, Pieces, Type, gguf

ROOT = Path(__file__).parents[3]
MODES = pytest.mark.parametrize("arrays", [False, True])
ARCH = LITTLE.pair("general.architecture", Type.STRING, "llama")
A_ARRAY = LITTLE.text("a") + LITTLE.number("I", Type.ARRAY)
HUGE = [2**63, 2**64 - 1, 2**61, 10**9]


def parse(data: bytes, arrays: bool = False) -> Metadata:
    return read_from(BytesIO(data), len(data), arrays)


def array_claims() -> list[Any]:
    kinds = [Type.UINT8, Type.FLOAT64, Type.BOOL, Type.STRING, Type.ARRAY]
    heads = [(f"{kind.name}-{count}", LITTLE.array_head(kind, count))
             for kind in kinds for count in HUGE]
    inner = LITTLE.array_head(Type.UINT8, 0)
    heads.append(("empty-arrays", LITTLE.array_head(Type.ARRAY, 2**63) + inner * 50))
    heads.append(("empty-texts", LITTLE.array_head(Type.STRING, 2**63) + bytes(800)))
    heads.append(("inner", LITTLE.array_head(Type.ARRAY, 2) + inner
                  + LITTLE.array_head(Type.UINT64, 2**63)))
    return [pytest.param(LITTLE.header(1) + A_ARRAY + head, id=name) for name, head in heads]


@MODES
@pytest.mark.parametrize("data", array_claims())
def test_an_array_longer_than_the_file_is_refused(data: bytes, arrays: bool) -> None:
    """An array that announces more than the file holds is an error that names the key."""
    with pytest.raises(GgufError, match="^the file ends inside the value of 'a'$"):
        parse(data, arrays)


TEXT_A = LITTLE.text("a") + LITTLE.number("I", Type.STRING)
TOO_LONG = [
    ("text", LITTLE.header(1) + TEXT_A + LITTLE.number("Q", 2**63)),
    ("text-by-one", LITTLE.header(1) + TEXT_A + LITTLE.number("Q", 4) + b"abc"),
    ("second-text", LITTLE.header(1) + A_ARRAY + LITTLE.array_head(Type.STRING, 2)
     + LITTLE.text("") + LITTLE.number("Q", 2**64 - 1)),
    ("last-text", LITTLE.header(1) + A_ARRAY + LITTLE.array_head(Type.STRING, 2)
     + LITTLE.text("") + LITTLE.number("Q", 1)),
    ("first-text", LITTLE.header(1) + A_ARRAY + LITTLE.array_head(Type.STRING, 2)
     + LITTLE.number("Q", 2**62) + LITTLE.text("")),
    ("first-text-by-far", LITTLE.header(1) + A_ARRAY + LITTLE.array_head(Type.STRING, 2)
     + LITTLE.number("Q", 2**64 - 1) + LITTLE.text("")),
    ("keys", LITTLE.header(2**63)),
    ("keys-by-one", LITTLE.header(2) + LITTLE.pair("", Type.UINT8, 1)),
    ("keys-many", LITTLE.header(1000) + bytes(12_999)),
    ("big-endian-text", BIG.header(1) + BIG.text("a") + BIG.number("I", 8) + BIG.number("Q", 1)),
]


@MODES
@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in TOO_LONG])
def test_a_length_beyond_the_end_is_refused(data: bytes, arrays: bool) -> None:
    """A text or a key count larger than what follows is an error, by any excess."""
    with pytest.raises(GgufError, match="^the file ends inside "):
        parse(data, arrays)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (LITTLE.header(1) + LITTLE.pair("a", 99, bytes(8)), "unknown value type 99"),
        (LITTLE.header(1) + LITTLE.pair("a", 13, bytes(8)), "unknown value type 13"),
        (LITTLE.header(1) + A_ARRAY + LITTLE.array_head(99, 1) + b"\0", "unknown value type 99"),
        (LITTLE.header(1) + A_ARRAY + LITTLE.array_head(99, 0), "unknown value type 99"),
        (BIG.header(1) + BIG.pair("a", 99, bytes(8)), "unknown value type 99"),
        (LITTLE.header(1) + LITTLE.number("Q", 2**63) + bytes(9), "a key is longer than 65535 byt"),
        (LITTLE.header(65_537) + bytes(13 * 65_537), "more than 65536 keys"),
        (LITTLE.header(0, version=0), "GGUF version 0 is not supported"),
        (LITTLE.header(0, version=1), "GGUF version 1 is not supported"),
        (LITTLE.header(0, version=4), "GGUF version 4 is not supported"),
        (BIG.header(0, version=1), "GGUF version 1 is not supported"),
        (b"GGUF\3\0\0\3" + bytes(16), "GGUF version 50331651 is not supported"),
        (b"GGUF", "the file ends inside the header"),
        (b"GGUF\3\0\0\0", "the file ends inside the header"),
        (LITTLE.header(0)[:23], "the file ends inside the header"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)}-bytes",
)
def test_a_broken_rule_is_named(data: bytes, message: str) -> None:
    """Whatever makes the file unreadable is said in a few words."""
    with pytest.raises(GgufError) as caught:
        parse(data)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 160


def test_a_long_key_is_shortened_in_the_message() -> None:
    """The error for a value under a key of 65535 bytes quotes only the start of the key."""
    with pytest.raises(GgufError, match=r"^the file ends inside the value of '\\nk+…'$") as caught:
        parse(LITTLE.header(1) + LITTLE.text("\n" + "k" * 65_534) + LITTLE.number("I", 8) + b"\0")
    assert len(str(caught.value)) < 130


@pytest.mark.parametrize(
    ("raw", "expected"), [("0000c07f", math.nan), ("0000807f", math.inf), ("000080ff", -math.inf)]
)
def test_values_that_json_cannot_hold_are_read(raw: str, expected: float) -> None:
    """Non-finite floats and the largest uint64 are returned beside the architecture."""
    freq = LITTLE.pair("llama.rope.freq_base", Type.FLOAT32, bytes.fromhex(raw))
    data = LITTLE.header(3) + ARCH + freq + LITTLE.pair("x", Type.UINT64, 2**64 - 1)
    values = parse(data).values
    assert repr(values.pop("llama.rope.freq_base")) == repr(expected)
    assert values == {"general.architecture": "llama", "x": 18446744073709551615}


def test_a_big_endian_file_is_read() -> None:
    """A big-endian file gives its architecture, not the huge counts a wrong order would see."""
    data = bytes.fromhex("47475546 00000003 0000000000000000 0000000000000001")
    data += BIG.pair("general.architecture", Type.STRING, "llama")
    assert len(data) == 69
    assert parse(data) == Metadata(3, "big", 0, {"general.architecture": "llama"}, True)


EVERYTHING: list[tuple[str, int, Any]] = [
    ("general.architecture", Type.STRING, "llama"),
    ("tokens", Type.ARRAY, (Type.STRING, ["a", "", "bcd"])),
    ("nested", Type.ARRAY, (Type.ARRAY, [(Type.UINT16, [1, 2]), (Type.STRING, ["x"])])),
    ("scores", Type.ARRAY, (Type.FLOAT32, [0.5, 1.5])),
    *((f"n{kind}", kind, 1) for kind in (0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12)),
    ("general.name", Type.STRING, "abcdef"),
]


@MODES
@pytest.mark.parametrize("pieces", [LITTLE, BIG], ids=["little", "big"])
def test_a_file_cut_anywhere_never_gives_a_wrong_value(pieces: Pieces, arrays: bool) -> None:
    """Cut within the metadata it is an error; cut after, all values are right and it is marked."""
    end = len(gguf(EVERYTHING, pieces=pieces))
    tensors = [pieces.tensor("t.weight", 32, 2), pieces.tensor("u.weight", 4)]
    whole = gguf(EVERYTHING, pieces=pieces, tensors=tensors)
    values = parse(whole, arrays).values
    for cut in range(end):
        with pytest.raises(GgufError):
            parse(whole[:cut], arrays)
    for cut in range(end, len(whole) + 1):
        metadata = parse(whole[:cut], arrays)
        assert metadata.values == values
        assert metadata.complete == (cut >= end + 2 * 24)


@pytest.mark.parametrize(
    ("head", "size", "message"),
    [
        (LITTLE.number("Q", 33 << 20), 40 << 20, "more than 32 MiB of text"),
        (LITTLE.number("Q", 150 << 20), 200 << 20,
         "the value of 'a' does not end in the first 128 MiB"),
    ],
    ids=["text", "section"],
)
def test_an_enormous_text_is_refused(tmp_path: Path, head: bytes, size: int, message: str) -> None:
    """A text that no model has is refused even where the file does hold that many bytes."""
    path = tmp_path / "huge.gguf"
    with path.open("wb") as file:
        file.write(LITTLE.header(1) + TEXT_A + head)
        file.truncate(size)
    with pytest.raises(GgufError) as caught:
        read(path)
    assert str(caught.value) == message


READER = """
import resource, sys
from app.catalog.gguf import GgufError, read
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for arrays in (False, True):
    try:
        read(sys.argv[1], arrays)
    except GgufError:
        print("refused")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
MALICIOUS = [
    (LITTLE.header(1) + A_ARRAY + LITTLE.array_head(Type.UINT8, 2**63), 49),
    (LITTLE.header(1) + A_ARRAY + LITTLE.array_head(Type.UINT8, 10**9), 49),
    (LITTLE.header(1) + A_ARRAY + LITTLE.array_head(Type.ARRAY, 1) * 20_000
     + LITTLE.array_head(Type.UINT32, 0), 240_049),
    (LITTLE.header(2**63), 24),
    (LITTLE.header(1) + A_ARRAY + LITTLE.array_head(Type.STRING, 2**63) + bytes(10**6), 1_000_049),
]


@pytest.mark.parametrize(
    ("data", "size"), MALICIOUS, ids=["array", "large-array", "deep", "keys", "texts"]
)
def test_a_malicious_file_takes_neither_time_nor_memory(
    tmp_path: Path, data: bytes, size: int
) -> None:
    """A process limited to five seconds of CPU refuses the file, growing by less than 50 MB."""
    assert len(data) == size
    path = tmp_path / "malicious.gguf"
    path.write_bytes(data)
    command = [sys.executable, "-c", READER, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    *refused, grown = done.stdout.split()
    assert refused == ["refused", "refused"], done.stderr
    assert int(grown) * 1024 < 50_000_000
