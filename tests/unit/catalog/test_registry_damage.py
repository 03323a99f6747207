"""A registry with something wrong in it: the rest is listed, and the log says what it is."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.catalog.registry import Registry
from tests.fakes.registry_home import LLAMA, RegistryHome
from tests.unit.catalog.conftest import LogLines

FIVE = [f"good{number}" for number in range(5)]


@pytest.fixture
def home(registry_home: RegistryHome) -> RegistryHome:
    """A registry of five good models."""
    for name in FIVE:
        registry_home.add(name)
    return registry_home


@pytest.fixture
def registry(home: RegistryHome) -> Registry:
    """The registry of those models, not looked at so far."""
    return Registry(home.path)


def names(registry: Registry) -> list[str]:
    """The names of its models, in order."""
    return [entry.name for entry in registry.entries()]


def manifest(name: Any = "odd", **fields: Any) -> bytes:
    """A manifest with these fields."""
    return json.dumps({"name": name, "files": [{"path": "m.gguf", "size": 1}], **fields}).encode()


BAD = {
    "empty": b"", "half": manifest()[:20], "list": b"[]", "null": b"null", "number": b"5",
    "wrong_name": b'{"name":5}', "no_files": b'{"name":"odd"}',
    "mark": b"\xef\xbb\xbf" + manifest(),
    "spaces": b" " * 50_000_000, "large": manifest(repo="x" * 2_000_000), "bytes": b"\xff" * 100,
    "nan": b'{"name":"odd","files":[NaN]}', "deep": b"[" * 100_000, "html": b"<html></html>",
    "outside": manifest(files=[{"path": "../../../etc/passwd"}]),
    "twice": b'{"name":"odd","name":"good1"}', "digits": b'{"name":' + b"7" * 5000 + b"}",
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD)
@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
def test_a_bad_manifest_hides_no_other(
        home: RegistryHome, registry: Registry, log_lines: LogLines,
        age: Callable[[Path], None], raw: bytes, old: bool) -> None:
    """It has one log line with its path, not one per look; repaired, it shows up."""
    path = home.models / "odd" / "manifest.json"
    home.write_manifest(path.parent, raw)
    if old:
        age(path)
    for _ in range(3):
        assert names(registry) == FIVE
        assert registry.find("odd") is None
    [line] = log_lines()
    assert str(path) in line and "is ignored: it " in line
    home.write_manifest(path.parent, manifest())
    assert names(registry) == [*FIVE, "odd"]
    assert log_lines() == []


@pytest.mark.parametrize("fields", [
    {"files": [{"path": "\ud800.gguf"}]}, {"files": [{"path": "a" * 5000}]},
    {"files": [{"path": "."}]}, {"files": [{"path": "x-00001-of-00003\ud800.gguf", "size": 1}]},
    {"quant": "\ud800"}, {"pulledAt": "\ud800"}, {"files": [{"path": "m", "size": 10**400}]},
], ids=["surrogate", "long", "dot", "surrogate_part", "quant", "time", "size"])
def test_an_odd_value_hides_no_other_model(
        home: RegistryHome, registry: Registry, fields: dict[str, Any]) -> None:
    """Usable or not, the manifest costs nobody else their place."""
    home.write_manifest(home.models / "odd", manifest(**fields))
    assert set(FIVE) <= set(names(registry))


def test_a_manifest_that_becomes_bad_is_told(
        home: RegistryHome, registry: Registry, log_lines: LogLines,
        age: Callable[[Path], None]) -> None:
    """Every new state has a line of its own: bad, bad in another way, good and bad again."""
    path = home.models / "odd" / "manifest.json"
    for raw, lines in ((manifest(), 0), (b"[]", 1), (b"null", 1), (manifest(), 0), (b"[]", 1)):
        home.write_manifest(path.parent, raw)
        age(path)
        assert names(registry) == (FIVE if lines else [*FIVE, "odd"])
        names(registry)
        assert len(log_lines()) == lines, raw


def test_a_bad_manifest_that_goes_is_forgotten(
        home: RegistryHome, registry: Registry, log_lines: LogLines) -> None:
    """Its directory may be removed and come back."""
    for raw in (b"[]", manifest()):
        home.write_manifest(home.models / "odd", raw)
        names(registry)
        home.remove("odd")
        assert names(registry) == FIVE
    assert len(log_lines()) == 1


@pytest.mark.parametrize("make", [
    os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path),
    lambda path: os.symlink("manifest.json", path), lambda path: os.symlink("/no/such", path),
    lambda path: os.symlink("..", path),
], ids=["fifo", "directory", "device", "link_to_itself", "dead_link", "link_up"])
def test_what_is_no_file_is_no_manifest(home: RegistryHome, registry: Registry,
                                        make: Callable[[Path], None]) -> None:
    """Nothing that could block or never end is opened."""
    (home.models / "odd").mkdir()
    make(home.models / "odd" / "manifest.json")
    found: list[str] = []
    listing = threading.Thread(target=lambda: found.extend(names(registry)), daemon=True)
    listing.start()
    listing.join(20)
    assert not listing.is_alive(), "the listing hangs"
    assert found == FIVE


def test_links_in_a_circle_end(home: RegistryHome, registry: Registry,
                               log_lines: LogLines) -> None:
    """Each model is listed once, however many ways lead to it."""
    (home.models / FIVE[0] / "loop").symlink_to("..")
    (home.models / "x").symlink_to("x")
    (home.models / "here").symlink_to(".")
    (home.models / "up").symlink_to("..")
    (home.models / "again").symlink_to(FIVE[1])
    assert names(registry) == FIVE
    assert log_lines() == []


def test_a_linked_model_counts(home: RegistryHome, registry: Registry, tmp_path: Path) -> None:
    """A folder elsewhere, and one file used by link and by hard link, are models like others."""
    outside = RegistryHome(tmp_path / "outside")
    (home.models / "far").symlink_to(outside.add("far"))
    target = home.add("near") / "model.gguf"
    hard = home.models / "hard"
    hard.mkdir()
    os.link(target.resolve(), hard / "m.gguf")
    home.write_manifest(hard, manifest("hard", files=[{"path": "m.gguf"}]))
    assert names(registry) == ["far", *FIVE, "hard", "near"]
    found = registry.find("hard")
    assert found is not None and found.size == len(LLAMA)


@pytest.mark.parametrize("name", [b"\xff", b"a b", b"100%", b"\xe5\x8c\x97", b"a\nb", b".hidden"])
def test_any_directory_name_is_read(home: RegistryHome, registry: Registry, name: bytes) -> None:
    """The model's name stands in its manifest; the directory's may be any bytes."""
    directory = Path(os.fsdecode(bytes(home.models) + b"/" + name))
    home.write_manifest(directory, manifest("zz"))
    assert names(registry) == [*FIVE, "zz"]
    found = registry.find("zz")
    assert found is not None and found.directory == directory


def test_a_bad_manifest_in_a_directory_without_a_text_name_is_told(
        home: RegistryHome, registry: Registry, log_lines: LogLines) -> None:
    """The line can be made even though the path is no UTF-8."""
    home.write_manifest(Path(os.fsdecode(bytes(home.models) + b"/\xff")), b"[]")
    assert names(registry) == FIVE
    [line] = log_lines()
    assert "\udcff/manifest.json" in line


def test_a_split_model_is_listed_once(registry_home: RegistryHome) -> None:
    """Three parts, named by a manifest, are one model of their common size."""
    parts = {f"x-0000{part}-of-00003.gguf": LLAMA * part for part in (1, 2, 3)}
    directory = registry_home.add_files("x", parts)
    [entry] = Registry(registry_home.path).entries()
    assert entry.size == 6 * len(LLAMA)
    assert entry.first_file == directory / "x-00001-of-00003.gguf"
