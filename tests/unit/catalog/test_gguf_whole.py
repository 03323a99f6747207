"""Whether a GGUF file has all that it announces."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.catalog import gguf_whole
from app.catalog.problems import BadFile
from tests.fakes.gguf_writer import BIG, LITTLE, Type, gguf
from tests.fakes.whole_gguf import SMALL, whole

Q4_K, UNKNOWN = 12, 99


def tensor(kind: int, offset: int, *sizes: int) -> bytes:
    """An entry of the tensor list."""
    shape = LITTLE.number("I", len(sizes)) + LITTLE.number("Q", *sizes)
    return LITTLE.text("t") + shape + LITTLE.number("I", kind) + LITTLE.number("Q", offset)


def padded(head: bytes, data: int, alignment: int = 32) -> bytes:
    """The head, and so many bytes of tensors."""
    return head + bytes(-len(head) % alignment + data)


@pytest.mark.parametrize(("head", "data", "alignment"), [
    (gguf(tensors=[tensor(0, 0, 10)]), 40, 32),
    (gguf(tensors=[tensor(1, 0, 10), tensor(0, 64, 2, 2)]), 80, 32),
    (gguf(tensors=[tensor(Q4_K, 0, 512, 2)]), 4 * 144, 32),
    (gguf(tensors=[tensor(0, 0)]), 4, 32),
    (gguf([("general.alignment", Type.UINT32, 64)], tensors=[tensor(0, 0, 1)]), 4, 64),
    (gguf([("general.alignment", Type.STRING, "x")], tensors=[tensor(0, 0, 1)]), 4, 32),
    (gguf(tensors=[tensor(UNKNOWN, 96, 1000)]), 96, 32),
    (gguf(tensors=[BIG.tensor("t", 10)], pieces=BIG), 40, 32)])
def test_a_file_is_whole_to_the_byte(tmp_path: Path, head: bytes, data: int,
                                     alignment: int) -> None:
    """With the last byte of its last tensor it is, and with more; without it is not."""
    path = tmp_path / "m.gguf"
    good = padded(head, data, alignment)
    for raw in (good, good + b"more"):
        path.write_bytes(raw)
        gguf_whole.require(path)
    path.write_bytes(good[:-1])
    with pytest.raises(BadFile, match=f"m.gguf' is cut short: .* {len(good) - 1} bytes of "):
        gguf_whole.require(path)


def test_a_file_without_tensors_is_whole(tmp_path: Path) -> None:
    """A vocabulary, say."""
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf([("general.file_type", Type.UINT32, 15)]))
    assert gguf_whole.quantization_of(gguf_whole.require(path)) == "Q4_K_M"


@pytest.mark.parametrize(("raw", "said"), [
    (b"", "not a GGUF file"), (b"GGUF", "ends inside"), (SMALL[:100], "ends inside"),
    (SMALL[:60], "ends inside"), (b"<html>", "not a GGUF file"), (bytes(100), "not a GGUF file")])
def test_what_is_no_gguf_is_told(tmp_path: Path, raw: bytes, said: str) -> None:
    """With the name that people know."""
    path = tmp_path / "m.gguf"
    path.write_bytes(raw)
    with pytest.raises(BadFile, match=f"'called' is no whole GGUF file: .*{said}"):
        gguf_whole.require(path, "called")


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A file that is missing, a folder, and a pipe, which is not waited for."""
    with pytest.raises(BadFile, match="cannot be read: No such file"):
        gguf_whole.require(tmp_path / "none.gguf")
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path, tmp_path / "pipe.gguf"):
        with pytest.raises(BadFile, match="not a regular file"):
            gguf_whole.require(path)


@pytest.mark.parametrize(("number", "name"), [(7, "Q8_0"), (0, "F32"), (77, "")])
def test_the_quantisation_that_a_file_tells(tmp_path: Path, number: int, name: str) -> None:
    """Nothing for one that has no name."""
    path = tmp_path / "m.gguf"
    path.write_bytes(whole(("general.file_type", Type.UINT32, number)))
    assert gguf_whole.quantization_of(gguf_whole.require(path)) == name
