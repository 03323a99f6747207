"""``inspect``: what a GGUF file says of itself, without a registry and without a gateway."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gguf_writer import LITTLE, Type, gguf
from tests.fakes.whole_gguf import PARTS, whole
from tests.unit.cli.conftest import Run

RunJson = Callable[..., Any]
FILE = whole(("general.file_type", Type.UINT32, 7), ("x.nan", Type.FLOAT32, float("nan")),
             ("x.words", Type.ARRAY, (Type.STRING, ["a", "b", "c"])),
             ("x.text", Type.STRING, "one\ntwo " + "z" * 100))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A whole file of a kind that engines know."""
    path = tmp_path / "Tiny.gguf"
    path.write_bytes(FILE)
    return path


def test_a_summary_and_the_metadata_are_printed(run: Run, file: Path) -> None:
    """A line each; long texts are shortened, and of arrays there is the length."""
    status, out, err = run("inspect", file)
    assert (status, err) == (0, "")
    lines = [line.split(None, 1) for line in out.splitlines()]
    summary = {words[0]: words[1] for words in lines[:lines.index(["metadata"])]}
    assert summary["file"].endswith(", GGUF 3") and summary["whole"] == "yes"
    assert (summary["architecture"], summary["parameters"]) == ("llama", "64 (64)")
    assert (summary["quantisation"], summary["context"]) == ("Q8_0", "4096")
    assert summary["tensors"] == "1 F32" and summary["memory"].startswith("about ")
    values = dict(lines[lines.index(["metadata"]) + 1:])
    assert values["x.words"] == "3 values" and values["x.nan"] == "nan"
    assert values["x.text"].startswith("one\\ntwo zzz") and values["x.text"].endswith("characters)")


def test_more_is_printed_when_asked_for(run: Run, file: Path) -> None:
    """Each tensor with its type and shape; arrays and texts whole."""
    out = run("inspect", file, "--tensors", "--arrays")[1]
    assert out.splitlines()[-1].split() == ["t", "F32", "64"]
    assert "['a', 'b', 'c']" in out and "z" * 100 in out


def test_it_speaks_json(run_json: RunJson, file: Path) -> None:
    """One document that any reader of JSON takes."""
    found = run_json("inspect", file)
    assert (found["version"], found["byte_order"], found["missing"]) == (3, "little", 0)
    assert (found["size"], found["parameters"], found["context"]) == (len(FILE), 64, 4096)
    assert found["quantization"] == "Q8_0" and found["memory_estimate"] >= len(FILE)
    assert found["metadata"]["x.nan"] is None and found["metadata"]["general.file_type"] == 7
    assert found["arrays"] == {"x.words": 3}
    assert found["tensors"] == [{"name": "t", "type": "F32", "shape": [64]}]
    assert run_json("inspect", file, "--arrays")["arrays"] == {"x.words": ["a", "b", "c"]}


def test_a_part_speaks_for_its_model(run_json: RunJson, tmp_path: Path) -> None:
    """What it holds is its own; parameters are those of all parts, if they are there."""
    paths = []
    for name, data in PARTS.items():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(data)
    found = run_json("inspect", paths[1])
    assert found["parameters"] == 64 * (1 + 2 + 3)
    assert found["tensors"][0]["shape"] == [128] and found["size"] == len(PARTS[paths[1].name])
    paths[2].unlink()
    assert run_json("inspect", paths[1])["parameters"] is None


def test_a_file_that_is_cut_is_told(run: Run, run_json: RunJson, file: Path) -> None:
    """It can be read all the same."""
    file.write_bytes(FILE[:-50])
    assert "whole          cut short: 50 bytes are missing\n" in run("inspect", file)[1]
    assert run_json("inspect", file)["missing"] == 50


def test_types_and_shapes(run_json: RunJson, tmp_path: Path) -> None:
    """Of several dimensions, and of a type that nobody knows."""
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf([], tensors=[LITTLE.tensor("a", 64, 2, 3, kind=12),
                                       LITTLE.tensor("b", kind=999)]))
    assert run_json("inspect", path)["tensors"] == [
        {"name": "a", "type": "Q4_K", "shape": [64, 2, 3]},
        {"name": "b", "type": "999", "shape": []}]


@pytest.mark.parametrize(("content", "why"), [
    (b"GGML", "not a GGUF file"), (FILE[:20], "the file ends inside"),
    (FILE[:4] + b"\x09" + FILE[5:], "GGUF version 9 is not supported"), (None, "No such file")],
    ids=["other", "cut", "new", "gone"])
def test_what_is_no_gguf_file_is_told(
        run: Run, tmp_path: Path, content: bytes | None, why: str) -> None:
    """In a sentence, with exit status 1; as JSON too."""
    path = tmp_path / "x.gguf"
    if content is not None:
        path.write_bytes(content)
    status, out, err = run("inspect", path)
    assert (status, out) == (1, "") and str(path) in err and why in err
    status, out, err = run("inspect", path, "--json")
    assert status == 1 and out.startswith('{"error":') and why in out and err == ""
