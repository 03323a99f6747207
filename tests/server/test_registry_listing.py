"""The registry over HTTP: it shows what is there now, and one bad entry never hides the others."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.registry_home import LLAMA, gguf
from tests.server.calls import SHOW, get, post
from tests.server.served_registry import GOOD, Served, rewriting


def test_a_model_shows_as_soon_as_it_is_pulled(served: Served) -> None:
    """A pull and a removal are seen by the next call of every route."""
    assert served.others() == []
    served.home.add("new:Q4_0")
    assert served.others() == ["new:Q4_0"]
    assert get(served.url, "/v1/models/new:Q4_0").status == 200
    assert post(served.url, SHOW, {"model": "new:Q4_0"}).status == 200
    served.home.remove("new:Q4_0")
    assert served.others() == []
    assert get(served.url, "/v1/models/new:Q4_0").status == 404
    assert post(served.url, SHOW, {"model": "new:Q4_0"}).status == 404


def test_a_model_pulled_again_shows_its_new_facts(served: Served) -> None:
    """Nothing of a replaced model is remembered, though its size stays the same."""
    for context in (1024, 2048):
        data = gguf({"general.architecture": "llama", "llama.context_length": context})
        served.home.add("again", data)
        shown = post(served.url, SHOW, {"model": "again"}).json()
        assert shown["model_info"]["llama.context_length"] == context
        served.home.remove("again")


def test_an_unfinished_pull_is_no_model(served: Served) -> None:
    """A folder without a manifest, with parts in it, is not listed."""
    directory = served.home.models / "half--Q4_0"
    directory.mkdir()
    (directory / "x.gguf.part").write_bytes(LLAMA[:20])
    (served.home.models / "stray.gguf").write_bytes(LLAMA)
    assert served.others() == []


def manifest(**changes: Any) -> bytes:
    """A good manifest of `bad`, with these fields put in or (by ...) left out."""
    fields = {"name": "bad", "repo": "bad", "revision": "main", "commit": "c", "quant": "Q4_0",
              "files": [{"path": "model.gguf", "size": 10, "sha256": "ab"}],
              "pulledAt": "2026-10-01T09:30:00Z", **changes}
    return json.dumps({key: value for key, value in fields.items() if value is not ...}).encode()


UNREADABLE = {
    "empty": b"", "half": manifest()[:60], "list": b"[]", "null": b"null", "text": b'"x"',
    "number_name": b'{"name":5}', "no_name": manifest(name=...), "blank_name": manifest(name=""),
    "no_files": manifest(files=...), "empty_files": manifest(files=[]),
    "files_of_numbers": manifest(files=[5]), "nameless_file": manifest(files=[{}]),
    "spaces": b" " * 50_000_000, "deep": b"[" * 100_000, "not_utf8": b'{"name":"\xff"}',
    "surrogate": b'{"name":"\\ud800","files":[]}',
}
DOUBTFUL = {
    "mark": b"\xef\xbb\xbf" + manifest(), "utf16": manifest().decode().encode("utf-16"),
    "text_size": manifest(files=[{"path": "model.gguf", "size": "x", "sha256": "ab"}]),
    "minus_size": manifest(files=[{"path": "model.gguf", "size": -1, "sha256": "ab"}]),
    "nan_size": manifest().replace(b"10", b"NaN"), "huge_size": manifest().replace(b"10", b"1e999"),
    "number_digest": manifest(files=[{"path": "model.gguf", "size": 1, "sha256": 5}]),
    "no_time": manifest(pulledAt=...), "odd_time": manifest(pulledAt="yesterday"),
    "number_time": manifest(pulledAt=5), "year_0": manifest(pulledAt="0000-00-00T00:00:00Z"),
    "null_quant": manifest(quant=None), "list_quant": manifest(quant=["Q"]),
    "nul_name": manifest(name="a\0b"), "long_name": manifest(name="n" * 100_000),
    "line_name": manifest(name="a\r\nb"), "surrogate_name": manifest(name="\ud800"),
    "outside": manifest(files=[{"path": "../../../../../etc/passwd", "size": 1, "sha256": "a"}]),
    "absolute": manifest(files=[{"path": "/etc/passwd", "size": 1, "sha256": "a"}]),
    "nul_path": manifest(files=[{"path": "a\0b", "size": 1, "sha256": "a"}]),
    "folder": manifest(files=[{"path": ".", "size": 1, "sha256": "a"}]),
    "missing": manifest(files=[{"path": "missing.gguf", "size": 1, "sha256": "a"}]),
    "repeated_key": b'{"name":"bad","name":"worse"' + manifest()[13:],
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_a_bad_manifest_is_left_out_and_logged_once(served: Served, data: bytes) -> None:
    """The five good models stay; the bad one costs one line of log, and shows once repaired."""
    directory = served.home.models / f"bad-{os.urandom(4).hex()}"
    served.home.write_manifest(directory, data)
    for _ in range(3):
        assert served.others() == []
    lines = [line for line in served.gateway.log().splitlines() if directory.name in line]
    assert len(lines) == 1, lines
    (directory / "model.gguf").write_bytes(LLAMA)
    served.home.write_manifest(directory, manifest())
    assert served.others() == ["bad"]


@pytest.mark.parametrize("data", DOUBTFUL.values(), ids=DOUBTFUL)
def test_a_doubtful_manifest_hides_no_other(served: Served, data: bytes) -> None:
    """Listed or left out, it makes no route fail and gives nothing from outside away."""
    directory = served.home.models / f"doubtful-{os.urandom(4).hex()}"
    served.home.write_manifest(directory, data)
    (directory / "model.gguf").write_bytes(LLAMA)
    for name in [*served.others(), "bad"]:
        shown = post(served.url, SHOW, {"model": name})
        assert shown.status in (200, 404, 400), shown.body
        assert b"root:" not in shown.body and shown.json()


def odd_entries(models: Path) -> dict[str, Callable[[], object]]:
    """Ways to put something into the registry that is no folder with a plain manifest in it."""
    folder = models / "odd"
    return {
        "link_to_parent": lambda: in_folder(folder, "loop").symlink_to(".."),
        "manifest_is_a_folder": lambda: in_folder(folder).mkdir(),
        "manifest_is_a_pipe": lambda: os.mkfifo(in_folder(folder)),
        "manifest_is_endless": lambda: in_folder(folder).symlink_to("/dev/zero"),
        "manifest_leads_nowhere": lambda: in_folder(folder).symlink_to("nowhere"),
        "manifest_leads_to_itself": lambda: in_folder(folder).symlink_to("manifest.json"),
        "link_to_registry": lambda: folder.symlink_to(models),
        "link_to_itself": lambda: folder.symlink_to("odd"),
        "link_to_nothing": lambda: folder.symlink_to("nowhere"),
        "link_to_a_good_one": lambda: folder.symlink_to("good-0--Q8_0"),
        "file": lambda: folder.write_bytes(b"x"),
        "pipe": lambda: os.mkfifo(folder),
        "bytes_no_text": lambda: os.mkdir(os.fsencode(models) + b"/odd\xff"),
    }


def in_folder(folder: Path, name: str = "manifest.json") -> Path:
    """A path in a new folder."""
    folder.mkdir()
    return folder / name


@pytest.mark.parametrize("kind", odd_entries(Path()))
def test_an_odd_entry_hides_no_model(served: Served, kind: str) -> None:
    """Links in circles, pipes and other things end no listing and list nothing twice."""
    odd_entries(served.home.models)[kind]()
    assert served.others() == []


def test_a_folder_whose_name_is_no_text_does_no_harm(served: Served) -> None:
    """Its model is listed or left out; the lists stay UTF-8."""
    directory = os.fsencode(served.home.models) + b"/caf\xe9"
    os.mkdir(directory)
    with open(directory + b"/manifest.json", "wb") as file:
        file.write(manifest(name="strange"))
    with open(directory + b"/model.gguf", "wb") as file:
        file.write(LLAMA)
    assert served.others() in ([], ["strange"])


def test_two_folders_of_one_name_are_one_model(served: Served) -> None:
    """Each model is listed once, though its file is there by link, by copy and by hard link."""
    first = served.home.models / "twin-1"
    served.home.write_manifest(first, manifest(name="twin"))
    (first / "model.gguf").write_bytes(LLAMA)
    second = served.home.models / "twin-2"
    served.home.write_manifest(second, manifest(name="twin"))
    os.link(first / "model.gguf", second / "model.gguf")
    (served.home.models / "twin-3").symlink_to(first)
    assert served.others() == ["twin"]


def test_a_manifest_that_is_being_written_does_no_harm(served: Served) -> None:
    """Read in the middle of a write, a manifest is there or not, and the five always are."""
    directory = served.home.add("busy:Q4_0")
    path = directory / "manifest.json"
    versions = [path.read_bytes(), path.read_bytes() + b" " * 100_000]
    with rewriting(path, versions):
        for _ in range(30):
            for route in ("/v1/models", "/api/tags"):
                answer = get(served.url, route)
                assert answer.status == 200
                assert all(name.encode() in answer.body for name in GOOD)
    assert served.others() == ["busy:Q4_0"]
