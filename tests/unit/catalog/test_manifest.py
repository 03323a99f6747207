"""Manifests: which model they describe, of which files, and which are no use."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from app.catalog.manifest import BadManifest, Entry, FileEntry, parse, parse_time

MTIME = datetime(2026, 10, 3, 12, tzinfo=timezone.utc).timestamp()
RFC_3339 = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})"


def file(path: str, size: int = 1) -> dict[str, Any]:
    """A file as a manifest names it."""
    return {"path": path, "size": size, "sha256": f"sha of {path}"}


def entry(directory: Path = Path("/models/m"), **fields: Any) -> Entry:
    """The entry of a manifest with a name, one file and these fields."""
    data = {"name": "m", "files": [file("m.gguf")], **fields}
    return parse(json.dumps(data).encode(), directory, MTIME)


def test_everything_is_read() -> None:
    """All fields that the gateway uses, from a manifest as it is pulled."""
    found = parse(json.dumps({
        "name": "org/Model-GGUF:Q4_0", "repo": "org/Model-GGUF", "revision": "main",
        "commit": "4b1c", "quant": "Q4_0", "files": [file("a.gguf", 7)],
        "pulledAt": "2026-10-01T09:30:00Z"}).encode(), Path("/models/m"), MTIME)
    assert found == Entry("org/Model-GGUF:Q4_0", "Q4_0", "2026-10-01T09:30:00Z",
                          (FileEntry("a.gguf", 7, "sha of a.gguf"),), Path("/models/m"),
                          "org/Model-GGUF", "main", "4b1c")
    assert (found.size, found.created) == (7, 1790847000)
    assert found.first_file == Path("/models/m/a.gguf")


@pytest.mark.parametrize("fields", [{}, {"quant": None}, {"quant": 4}, {"quant": ["Q4"]}])
def test_a_quantisation_may_be_missing(fields: dict[str, Any]) -> None:
    """It is a text, empty where the manifest has none."""
    assert entry(**fields).quant == ""


@pytest.mark.parametrize("value", [None, 5, ["x"]])
def test_where_it_is_from_may_be_missing(value: Any) -> None:
    """What is no text counts as nothing, and what is no object as no modelfile."""
    found = entry(repo=value, revision=value, commit=value, modelfile=value)
    assert (found.repo, found.revision, found.commit, found.modelfile) == ("", "", "", {})


def test_a_modelfile_is_read() -> None:
    """As it was written."""
    assert entry(modelfile={"system": "Be brief."}).modelfile == {"system": "Be brief."}


@pytest.mark.parametrize("sha256", [None, 5, ["x"]])
def test_a_hash_may_be_missing(sha256: Any) -> None:
    """The same holds for the hash of a file."""
    assert entry(files=[{"path": "a", "size": 1, "sha256": sha256}]).first.sha256 == ""


def split(*parts: int, of: int = 3) -> list[str]:
    """The names of these parts of a split model."""
    return [f"x-{part:05d}-of-{of:05d}.gguf" for part in parts]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
def test_a_split_model_is_one(order: tuple[int, ...]) -> None:
    """Its size is the sum of its parts, and engines open part 1, in whatever order they stand."""
    found = entry(files=[file(path, size) for path, size in zip(split(*order), (1, 10, 100))])
    assert found.size == 111
    assert found.first.path == "x-00001-of-00003.gguf"


@pytest.mark.parametrize("named", [(1,), (2,), (1, 3)])
def test_parts_that_are_not_named_count(tmp_path: Path, named: tuple[int, ...]) -> None:
    """Part 1 finds the others by itself, so they are in use."""
    for path in split(1, 2, 3):
        (tmp_path / path).write_bytes(b"12345")
    found = entry(tmp_path, files=[file(path, 5) for path in split(*named)])
    assert found.size == 15
    assert {f.path for f in found.files} == set(split(1, 2, 3))
    assert found.first_file == tmp_path / "x-00001-of-00003.gguf"


def test_parts_that_are_not_there_do_not_count(tmp_path: Path) -> None:
    """Nor does the part of another model, or a folder of that name."""
    (tmp_path / split(2)[0]).mkdir()
    for name in ("x-00002-of-00004.gguf", "y-00002-of-00003.gguf"):
        (tmp_path / name).write_bytes(b"12345")
    assert entry(tmp_path, files=[file(split(1)[0], 5)]).size == 5


def test_parts_in_a_folder_are_found(tmp_path: Path) -> None:
    """Repositories keep large models in folders of their own."""
    (tmp_path / "Q8").mkdir()
    for path in split(1, 2, 3):
        (tmp_path / "Q8" / path).write_bytes(b"12345")
    found = entry(tmp_path, files=[file(f"Q8/{path}", 5) for path in split(2, 1)])
    assert (found.size, found.first.path) == (15, "Q8/x-00001-of-00003.gguf")


@pytest.mark.parametrize("path", [
    "x-00001-of-99999.gguf", "x-00000-of-00000.gguf", "x-1-of-3.gguf", "x-00001-of-00003.bin"])
def test_what_only_looks_like_a_part_is_a_file(path: str) -> None:
    """An absurd number of parts is not looked for."""
    assert entry(files=[file(path, 9)]).size == 9


@pytest.mark.parametrize(("paths", "first"), [
    (["mmproj-F16.gguf", "m.gguf"], "m.gguf"),
    (["m.gguf", "mmproj-F16.gguf"], "m.gguf"),
    (["mmproj.gguf", "x-00002-of-00002.gguf", "x-00001-of-00002.gguf"], "x-00001-of-00002.gguf"),
    (["sub/mmproj-F16.gguf", "sub/m.gguf"], "sub/m.gguf"),
    (["mmproj-F16.gguf"], "mmproj-F16.gguf"),
    (["m.gguf", "LICENSE"], "m.gguf"),
    (["config.json", "x-00001-of-00002.gguf", "x-00002-of-00002.gguf"], "x-00001-of-00002.gguf"),
])
def test_engines_open_the_weights(paths: list[str], first: str) -> None:
    """Neither a projector nor what else lies beside them, wherever it stands in the list."""
    assert entry(files=[file(path) for path in paths]).first.path == first


@pytest.mark.parametrize("size", [None, "5", 5.0, True, -1, [5], {}])
def test_a_missing_size_is_that_of_the_file(tmp_path: Path, size: Any) -> None:
    """What is no number of bytes is looked up."""
    (tmp_path / "m.gguf").write_bytes(b"x" * 1234)
    files = [{"path": "m.gguf", "size": size}, {"path": "gone.gguf", "size": size}]
    assert [f.size for f in entry(tmp_path, files=files).files] == [1234, 0]


def test_a_size_of_zero_is_one(tmp_path: Path) -> None:
    """It is a number of bytes like any other."""
    (tmp_path / "m.gguf").write_bytes(b"x")
    assert entry(tmp_path, files=[{"path": "m.gguf", "size": 0}]).size == 0


BAD = {
    "empty": (b"", "is not valid JSON"),
    "half": (b'{"name":"m","files":[{"pa', "is not valid JSON"),
    "spaces": (b" " * 1000, "is not valid JSON"),
    "bytes": (b"\xff\xfe", "is not valid JSON"),
    "nan": (b'{"name":"m","size":NaN}', "is not valid JSON: NaN is no JSON value"),
    "deep": (b"[" * 5000 + b"]" * 5000, "is nested more than 256 levels deep"),
    "twice": (b'{"name":"m","name":"n"}', "is not valid JSON: the key 'name' is repeated"),
    "mark": (b'\xef\xbb\xbf{"name":"m"}', "starts with a byte-order mark"),
    "list": (b"[]", "is no JSON object"),
    "null": (b"null", "is no JSON object"),
    "text": (b'"m"', "is no JSON object"),
}


@pytest.mark.parametrize(("raw", "reason"), BAD.values(), ids=BAD)
def test_what_is_no_json_object_is_bad(raw: bytes, reason: str) -> None:
    """The reason is told in a few words."""
    with pytest.raises(BadManifest) as raised:
        parse(raw, Path("/models/m"), MTIME)
    assert str(raised.value) == reason


@pytest.mark.parametrize("name", [None, 5, "", "  ", ["m"], "a\nb", "a\0", "\ud800", "a\u202eb"])
def test_a_name_must_be_usable(name: Any) -> None:
    """A name is one line that can be shown and typed."""
    with pytest.raises(BadManifest, match="has no usable name"):
        entry(name=name)


@pytest.mark.parametrize(("files", "reason"), [
    (None, "names no files"), ([], "names no files"), ({}, "names no files"),
    ("m.gguf", "names no files"), (5, "names no files"),
    ([None], "has a file without a path"), (["m.gguf"], "has a file without a path"),
    ([{}], "has a file without a path"), ([{"path": ""}], "has a file without a path"),
    ([{"path": 5}], "has a file without a path"), ([{"path": "a\0"}], "has a file without a path"),
    ([file("a"), {}], "has a file without a path"), ([{"path": "."}], "has a file without a path"),
    ([{"path": "\ud800"}], "has a file without a path"),
    ([{"path": "/etc/passwd"}], "has a file outside its directory"),
    ([{"path": "../x.gguf"}], "has a file outside its directory"),
    ([{"path": "a/../../x"}], "has a file outside its directory"),
    ([{"path": ".."}], "has a file outside its directory"),
])
def test_files_must_be_usable(files: Any, reason: str) -> None:
    """Each has a path below the model's own directory."""
    with pytest.raises(BadManifest) as raised:
        entry(files=files)
    assert str(raised.value) == reason


NINE_THIRTY = datetime(2026, 10, 1, 9, 30, tzinfo=timezone.utc)


@pytest.mark.parametrize(("text", "expected"), [
    ("2026-10-01T09:30:00Z", NINE_THIRTY),
    ("2026-10-01T09:30:00z", NINE_THIRTY),
    ("2026-10-01T09:30:00+00:00", NINE_THIRTY),
    ("2026-10-01T11:30:00+02:00", NINE_THIRTY),
    ("2026-10-01T09:30:00", NINE_THIRTY),
    ("2026-10-01T09:30:00.5Z", NINE_THIRTY + timedelta(milliseconds=500)),
    ("2026-10-01T09:30:00.123456789Z", NINE_THIRTY + timedelta(microseconds=123456)),
    ("2026-10-01T09:30:00.1234+00:00", NINE_THIRTY + timedelta(microseconds=123400)),
])
def test_times_are_read(text: str, expected: datetime) -> None:
    """With any fraction and offset, on every version of Python."""
    assert parse_time(text) == expected


@pytest.mark.parametrize("text", [
    "2026-10-01T09:30:00Z", "2026-10-01T09:30:00.123456789Z", "2026-10-01T11:30:00+02:00"])
def test_the_time_of_the_pull_stays_as_it_is(text: str) -> None:
    """Not a digit of it is lost."""
    assert entry(pulledAt=text).pulled_at == text


@pytest.mark.parametrize("value", [
    None, "", "yesterday", 5, 1790847000, "2026-13-01T00:00:00Z", "2026-10-01T25:00:00Z",
    ["2026-10-01T09:30:00Z"]])
def test_a_bad_time_is_that_of_the_manifest(value: Any) -> None:
    """Something has to be shown, and that is when the manifest was written."""
    assert entry(pulledAt=value).pulled_at == "2026-10-03T12:00:00Z"
    assert entry(pulledAt=value).created == MTIME


@pytest.mark.parametrize("value", [
    "2026-10-01T09:30:00Z", "2026-10-01T09:30:00z", "2026-10-01T09:30:00", "2026-10-01",
    "2026-10-01 09:30:00", "2026-10-01T09:30:00,5Z", "20261001T093000Z", "2026-W40-4", "x"])
def test_the_time_that_is_shown_is_always_rfc_3339(value: Any) -> None:
    """Clients in other languages throw a whole list away for one time they cannot read."""
    assert re.fullmatch(RFC_3339, entry(pulledAt=value).pulled_at)
