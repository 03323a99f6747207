"""The registry follows its directory while the gateway runs."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.catalog.registry import Registry
from tests.fakes.registry_home import RegistryHome
from tests.unit.catalog.conftest import LogLines


@pytest.fixture
def registry(registry_home: RegistryHome) -> Registry:
    """The registry of the home that the test fills."""
    return Registry(registry_home.path)


def names(registry: Registry) -> list[str]:
    """The names of its models, in order."""
    return [entry.name for entry in registry.entries()]


def test_a_registry_that_is_not_there_is_empty(tmp_path: Path, log_lines: LogLines) -> None:
    """Before the first pull there is no directory, and that is no news."""
    assert Registry(tmp_path / "nowhere").entries() == []
    assert Registry(tmp_path / "nowhere").find("m") is None
    (tmp_path / "models").write_text("no directory")
    assert Registry(tmp_path).entries() == []
    assert log_lines() == []


def test_models_are_sorted_by_name(registry_home: RegistryHome, registry: Registry) -> None:
    """Whatever their directories are called."""
    for name in ("zeta", "org/b:Q4", "Alpha", "org/a:Q4"):
        registry_home.add(name)
    assert names(registry) == ["Alpha", "org/a:Q4", "org/b:Q4", "zeta"]


def test_a_directory_without_a_manifest_is_an_unfinished_pull(
        registry_home: RegistryHome, registry: Registry, log_lines: LogLines) -> None:
    """It is listed as soon as its manifest is there, and never complained about."""
    directory = registry_home.models / "m"
    directory.mkdir()
    (directory / "model.gguf.part").write_bytes(b"half")
    (registry_home.models / "a-file").write_text("x")
    assert names(registry) == []
    directory.joinpath("model.gguf.part").unlink()
    directory.rmdir()
    registry_home.add("m")
    assert names(registry) == ["m"]
    assert log_lines() == []


def test_models_come_and_go(registry_home: RegistryHome, registry: Registry) -> None:
    """What is pulled or removed while the gateway runs shows at the next look."""
    registry_home.add("a")
    assert names(registry) == ["a"]
    registry_home.add("b")
    assert registry.find("b") is not None
    assert names(registry) == ["a", "b"]
    registry_home.remove("a")
    assert registry.find("a") is None
    assert names(registry) == ["b"]
    registry_home.add("a")
    assert registry.find("a") is not None
    assert names(registry) == ["a", "b"]


def test_a_model_pulled_again_is_read_anew(registry_home: RegistryHome,
                                           registry: Registry) -> None:
    """However fast one manifest of the same length follows another."""
    directory = registry_home.add("m", quant="Q00")
    raw = (directory / "manifest.json").read_bytes()
    for number in range(100):
        registry_home.write_manifest(directory, raw.replace(b"Q00", b"Q%02d" % number))
        entry = registry.find("m") if number % 2 else registry.entries()[0]
        assert entry is not None and entry.quant == f"Q{number:02d}"


def test_a_manifest_rewritten_in_place_is_read_anew(
        registry_home: RegistryHome, registry: Registry) -> None:
    """The same inode and the same size do not hide a change."""
    path = registry_home.add("m", quant="Q00") / "manifest.json"
    raw = path.read_bytes()
    for number in range(100):
        path.write_bytes(raw.replace(b"Q00", b"Q%02d" % number))
        assert registry.entries()[0].quant == f"Q{number:02d}"


def test_a_manifest_that_stays_is_read_once(registry_home: RegistryHome, registry: Registry,
                                            age: Callable[[Path], None]) -> None:
    """As long as nothing changed it is the very same entry."""
    age(registry_home.add("m") / "manifest.json")
    [first] = registry.entries()
    assert registry.entries()[0] is first
    assert registry.find("M:latest") is first


@pytest.mark.parametrize(("asked", "found"), [
    ("foo", "foo"), ("foo:latest", "foo"), ("FOO", "foo"), ("foo:1b", None),
    ("bar:1b", "bar:1b"), ("BAR:1B", "bar:1b"), ("bar", None), ("bar:latest", None),
    ("org/X", "org/x:latest"), ("org/x:latest", "org/x:latest"), ("x", None),
    ("hf.co/a/b:q4_k_m", "hf.co/a/b:Q4_K_M"), ("", None), ("../../etc/passwd", None),
    ("foo/", None), (" foo", None)])
def test_a_model_is_found_by_any_spelling(registry_home: RegistryHome, registry: Registry,
                                          asked: str, found: str | None) -> None:
    """Case and a missing tag latest make no difference; no other tag is guessed."""
    for name in ("foo", "bar:1b", "org/x:latest", "hf.co/a/b:Q4_K_M"):
        registry_home.add(name)
    for _ in range(2):
        entry = registry.find(asked)
        assert (entry and entry.name) == found
    registry.entries()
    entry = registry.find(asked)
    assert (entry and entry.name) == found


def test_that_there_is_none_may_be_known_already(
        registry_home: RegistryHome, registry: Registry) -> None:
    """For as long as who asks allows; what was found is looked at each time."""
    assert registry.find("a") is None
    registry_home.add("a")
    assert registry.find("a", 60) is None
    assert registry.find("a") is not None
    registry_home.remove("a")
    assert registry.find("a", 60) is None


def test_of_two_directories_with_one_name_the_first_counts(
        registry_home: RegistryHome, registry: Registry) -> None:
    """A name is there once, in one spelling."""
    for directory, quant in (("b", "second"), ("a", "first")):
        path = registry_home.add("FOO:latest" if directory == "b" else "foo", quant=quant)
        path.rename(registry_home.models / directory)
    assert [(e.name, e.quant) for e in registry.entries()] == [("foo", "first")]
    found = registry.find("FOO")
    assert found is not None and found.quant == "first"


def rewrite(path: Path, raw: bytes, stop: threading.Event, written: list[int]) -> None:
    """Write a manifest again and again, in place and in two halves, until told to stop."""
    while not stop.wait(0.004):
        with path.open("wb", buffering=0) as file:
            file.write(raw[:40])
            file.write(raw[40:])
        written.append(len(raw))


def test_a_manifest_is_listed_while_it_is_rewritten(
        registry_home: RegistryHome, registry: Registry, log_lines: LogLines) -> None:
    """A hundred times a second: neither it nor the others ever disappear."""
    path = registry_home.add("busy") / "manifest.json"
    expected = ["busy", *(f"m{number}" for number in range(5))]
    for name in expected[1:]:
        registry_home.add(name)
    assert names(registry) == expected
    stop, written = threading.Event(), list[int]()
    writer = threading.Thread(target=rewrite, args=(path, path.read_bytes(), stop, written))
    writer.start()
    try:
        listed = [names(registry)]
        while len(written) < 100 and writer.is_alive():
            listed.append(names(registry))
            assert registry.find("busy") is not None
    finally:
        stop.set()
        writer.join()
    assert all(each == expected for each in listed), listed
    assert log_lines() == []


def test_many_threads_look_at_once(registry_home: RegistryHome, registry: Registry) -> None:
    """Lists and look-ups are right while models come and go around them."""
    registry_home.add("stays")
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            assert "stays" in names(registry)
            assert registry.find("stays") is not None

    with ThreadPoolExecutor(4) as pool:
        lookers = [pool.submit(look) for _ in range(4)]
        for _ in range(30):
            registry_home.add("comes")
            registry_home.remove("comes")
        done.set()
        for looker in lookers:
            looker.result(timeout=20)
    assert names(registry) == ["stays"]


def test_a_thousand_models_are_listed(registry_home: RegistryHome, registry: Registry) -> None:
    """The directory of a collector is no problem."""
    for number in range(1000):
        directory = registry_home.models / f"{number:04d}"
        directory.mkdir()
        manifest = {"name": f"m{number:04d}", "files": [{"path": "m.gguf", "size": number}]}
        (directory / "manifest.json").write_text(json.dumps(manifest))
    assert names(registry) == [f"m{number:04d}" for number in range(1000)]
    assert sum(entry.size for entry in registry.entries()) == 499500
    os.unlink(registry_home.models / "0500" / "manifest.json")
    assert len(registry.entries()) == 999
