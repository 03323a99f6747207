"""What a model file says of itself, read once for as long as it stays the same."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from app.catalog.facts import Facts, FactsCache
from app.jsontext import encode
from tests.fakes.gguf_writer import LITTLE, Type, gguf
from tests.fakes.strict_json import strict_json
from tests.unit.catalog.conftest import LogLines

Age = Callable[[Path], None]
ARCH = ("general.architecture", Type.STRING, "llama")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file of a test goes."""
    return tmp_path / "model.gguf"


def facts_of(path: Path, *pairs: Any) -> Facts:
    """The facts of a file with these keys."""
    path.write_bytes(gguf(pairs))
    return FactsCache().of(path)


def test_scalars_and_texts_are_facts(path: Path) -> None:
    """In the order of the file, without its arrays."""
    found = facts_of(path, ARCH, ("general.size_label", Type.STRING, "7B"),
                     ("tokenizer.ggml.tokens", Type.ARRAY, (Type.STRING, ["a", "b"])),
                     ("llama.context_length", Type.UINT32, 4096), ("x", Type.BOOL, True))
    assert list(found.values.items()) == [
        ("general.architecture", "llama"), ("general.size_label", "7B"),
        ("llama.context_length", 4096), ("x", True)]
    assert (found.architecture, found.size_label, found.context_length) == ("llama", "7B", 4096)


def test_short_arrays_are_facts_of_their_own(path: Path) -> None:
    """Such as one number for each layer; of a vocabulary only its length is known."""
    found = facts_of(path, ARCH, ("llama.heads", Type.ARRAY, (Type.INT32, [8, 0, 8])),
                     ("tokenizer.ggml.tokens", Type.ARRAY, (Type.STRING, ["a", "b"])))
    assert found.values == {"general.architecture": "llama"}
    assert found.arrays == {"llama.heads": (3, [8, 0, 8]), "tokenizer.ggml.tokens": (2, [])}


@pytest.mark.parametrize("pairs", [
    [], [("general.architecture", Type.STRING, "")], [("other", Type.STRING, "x")],
    [(f"general.{key}", Type.FLOAT32, math.nan) for key in ("architecture", "size_label")]])
def test_a_file_may_say_nothing(path: Path, pairs: list[Any]) -> None:
    """Each fact then has a value that clients can read."""
    found = facts_of(path, *pairs)
    assert (found.architecture, found.size_label, found.context_length) == ("unknown", "", 0)


@pytest.mark.parametrize(("kind", "value"), [
    (Type.STRING, "4096"), (Type.FLOAT32, 4096.0), (Type.FLOAT32, math.nan)])
def test_a_context_length_that_is_no_count_is_none(path: Path, kind: Type, value: Any) -> None:
    """Clients read a whole number."""
    assert facts_of(path, ARCH, ("llama.context_length", kind, value)).context_length == 0


@pytest.mark.parametrize("kind", [Type.FLOAT32, Type.FLOAT64])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_hold_is_null(path: Path, kind: Type, value: float) -> None:
    """The key stays, the facts are fit for strict JSON."""
    found = facts_of(path, ARCH, ("llama.rope.freq_base", kind, value), ("after", kind, 0.5))
    assert found.values == {
        "general.architecture": "llama", "llama.rope.freq_base": None, "after": 0.5}
    assert strict_json(encode(found.values)) == found.values


@pytest.mark.parametrize(("kind", "value"), [
    (Type.UINT64, 2**64 - 1), (Type.INT64, -2**63), (Type.UINT64, 2**53 + 1)])
def test_a_large_integer_is_exact(path: Path, kind: Type, value: int) -> None:
    """Every digit of 64 bits is there."""
    found = facts_of(path, ("x", kind, value))
    assert found.values == {"x": value}
    assert encode(found.values) == b'{"x":%d}' % value


def test_an_unchanged_file_is_read_once(path: Path, tmp_path: Path, age: Age) -> None:
    """It is the same facts again, also by another name of the same file."""
    path.write_bytes(gguf([ARCH]))
    age(path)
    cache = FactsCache()
    first = cache.of(path)
    assert first.architecture == "llama"
    os.link(path, tmp_path / "hard.gguf")
    (tmp_path / "soft.gguf").symlink_to(path)
    for name in ("model.gguf", "hard.gguf", "soft.gguf"):
        assert cache.of(tmp_path / name) is first


def test_a_changed_file_is_read_anew(path: Path) -> None:
    """However fast one file of the same length follows another, in place or by renaming."""
    cache = FactsCache()
    for number in range(50):
        target = path if number % 2 else path.with_suffix(".part")
        target.write_bytes(gguf([("general.architecture", Type.STRING, f"llama{number:02d}")]))
        os.replace(target, path)
        assert cache.of(path).architecture == f"llama{number:02d}"


def test_a_settled_file_that_changes_is_read_anew(path: Path, age: Age) -> None:
    """What was cached does not outlive a change of size or time."""
    cache = FactsCache()
    for name in ("llama", "qwen2", "gemma"):
        path.write_bytes(gguf([("general.architecture", Type.STRING, name)]))
        age(path)
        assert cache.of(path).architecture == name


def test_a_file_that_comes_back_is_read(path: Path) -> None:
    """A missing one is no news, and not remembered as missing."""
    cache = FactsCache()
    assert cache.of(path) == Facts({})
    path.write_bytes(gguf([ARCH]))
    assert cache.of(path).architecture == "llama"
    path.unlink()
    assert cache.of(path) == Facts({})


UNREADABLE = {
    "empty": b"", "magic_only": b"GGUF", "other": b"<html>", "cut": gguf([ARCH])[:-2],
    "version": LITTLE.header(1, version=99),
    "type": LITTLE.header(1) + LITTLE.text("a") + b"c\0\0\0" * 3,
    "endless_array": LITTLE.header(1) + LITTLE.text("a") + LITTLE.number("I", 9)
    + LITTLE.array_head(0, 2**63),
    "nested": LITTLE.header(1) + LITTLE.text("a") + LITTLE.number("I", 9)
    + LITTLE.array_head(9, 1) * 20_000 + LITTLE.array_head(4, 0),
}


@pytest.mark.parametrize("old", [True, False], ids=["old", "new"])
@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_file_has_no_facts(
        path: Path, log_lines: LogLines, age: Age, data: bytes, old: bool) -> None:
    """It is told once, with its path, and not at every look."""
    path.write_bytes(data)
    if old:
        age(path)
    cache = FactsCache()
    for _ in range(3):
        assert cache.of(path) == Facts({})
    [line] = log_lines()
    assert line.startswith(f"the model file {path} has no readable metadata: ")


def test_a_repaired_file_has_facts(path: Path, log_lines: LogLines) -> None:
    """A file that was bad is read again when it changed."""
    cache = FactsCache()
    path.write_bytes(b"half")
    assert cache.of(path) == Facts({})
    path.write_bytes(gguf([ARCH]))
    assert cache.of(path).architecture == "llama"
    assert len(log_lines()) == 1


def test_an_incomplete_file_is_told(path: Path, log_lines: LogLines, age: Age) -> None:
    """Its metadata is right as far as it goes; that its tensors are missing is logged once."""
    path.write_bytes(LITTLE.header(1, tensors=3) + LITTLE.pair(*ARCH))
    age(path)
    cache = FactsCache()
    for _ in range(3):
        assert cache.of(path).architecture == "llama"
    assert log_lines() == [f"the model file {path} is incomplete: it ends before its tensors"]


@pytest.mark.parametrize("make", [
    os.mkdir, os.mkfifo, lambda path: path.symlink_to(path), lambda path: path.symlink_to("gone")],
    ids=["directory", "fifo", "circle", "dead_link"])
def test_what_is_no_file_has_no_facts(path: Path, log_lines: LogLines,
                                      make: Callable[[Path], None]) -> None:
    """It is not opened, and counts as missing."""
    make(path)
    assert FactsCache().of(path) == Facts({})
    assert log_lines() == []


def test_a_path_that_no_file_can_have_has_no_facts() -> None:
    """A manifest may name anything."""
    for path in ("a\0b", "\ud800", "x" * 5000):
        assert FactsCache().of(Path(path)) == Facts({})


def test_many_threads_ask_at_once(tmp_path: Path, age: Age) -> None:
    """Each gets the facts of its own file."""
    paths = [tmp_path / f"{number}.gguf" for number in range(20)]
    for number, path in enumerate(paths):
        path.write_bytes(gguf([("general.architecture", Type.STRING, f"a{number}")]))
        age(path)
    cache = FactsCache()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda path: cache.of(path).architecture, paths * 5))
    assert found == [f"a{number}" for number in range(20)] * 5
