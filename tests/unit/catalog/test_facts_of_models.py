"""What is remembered of models, and for how long."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.catalog.facts import FactsCache, ModelFacts
from app.catalog.manifest import Entry
from app.catalog.registry import Registry
from app.catalog.signature import signature, unchanged
from tests.fakes.model_files import KINDS, let_settle, part, projector, weights
from tests.fakes.registry_home import RegistryHome


def entry_of(registry: Registry, name: str = "m:Q4") -> Entry:
    """The entry, which has to be there."""
    found = registry.find(name)
    assert found is not None
    return found


@pytest.fixture
def registry(registry_home: RegistryHome) -> Registry:
    """The registry of the test."""
    return Registry(registry_home.path)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unchanged_model_is_the_same_object(
        registry_home: RegistryHome, registry: Registry, kind: str) -> None:
    """So that what is made of it can be kept as well."""
    registry_home.add_files("m:Q4", KINDS[kind])
    let_settle(registry_home)
    cache = FactsCache()
    first = cache.of_model(entry_of(registry))
    assert cache.of_model(entry_of(registry)) is first


Change = Callable[[Path], object]
CHANGES: dict[str, Change] = {
    "part": lambda path: (path / "x-00002-of-00002.gguf").write_bytes(part(2, 2, 5000)),
    "first": lambda path: (path / "x-00001-of-00002.gguf").write_bytes(part(1, 2, 5000)),
    "part_gone": lambda path: (path / "x-00002-of-00002.gguf").unlink(),
    "projector": lambda path: (path / "mmproj.gguf").write_bytes(projector(audio=True)),
    "projector_gone": lambda path: (path / "mmproj.gguf").unlink(),
    "touched": lambda path: os.utime(path / "x-00002-of-00002.gguf", (1, 1)),
}


def said(model: ModelFacts) -> tuple[int, tuple[str, ...]]:
    """What the changes above change, or not."""
    return model.parameters, model.capabilities()


@pytest.mark.parametrize(("change", "expected"), [
    ("part", (5500, ("completion", "vision"))), ("first", (5500, ("completion", "vision"))),
    ("part_gone", (0, ("completion", "vision"))), ("projector", (1000, ("completion", "audio"))),
    ("projector_gone", (1000, ("completion",))), ("touched", (1000, ("completion", "vision")))])
def test_a_change_of_any_file_is_seen(registry_home: RegistryHome, registry: Registry, change: str,
                                      expected: tuple[int, tuple[str, ...]]) -> None:
    """Also of the parts and of the projector, and when one goes."""
    directory = registry_home.add_files("m:Q4", {
        "x-00001-of-00002.gguf": part(1, 2, 500), "x-00002-of-00002.gguf": part(2, 2, 500),
        "mmproj.gguf": projector(vision=True)})
    let_settle(registry_home)
    cache = FactsCache()
    entry = entry_of(registry)
    before = cache.of_model(entry)
    assert said(before) == (1000, ("completion", "vision"))
    CHANGES[change](directory)
    after = cache.of_model(entry)
    assert after is not before
    assert said(after) == expected


def test_a_file_that_is_still_new_is_looked_at_again(
        registry_home: RegistryHome, registry: Registry) -> None:
    """However fast one file of the same length follows another."""
    directory = registry_home.add_files("m:Q4", {"model.gguf": weights()})
    cache, entry = FactsCache(), entry_of(registry)
    for number in range(30):
        (directory / "model.gguf").write_bytes(weights(f"llama{number:02d}"))
        assert cache.of_model(entry).file.architecture == f"llama{number:02d}"


def test_a_new_manifest_is_a_new_model(registry_home: RegistryHome, registry: Registry) -> None:
    """Though the file is the same."""
    cache = FactsCache()
    levels = []
    for quant in ("Q4", "Q5"):
        registry_home.add_files("m:Q4", {"model.gguf": weights()}, quant=quant)
        let_settle(registry_home)
        levels.append(cache.of_model(entry_of(registry)).quantization())
        registry_home.remove("m:Q4")
    assert levels == ["Q4", "Q5"]


def test_many_threads_ask_for_models_at_once(
        registry_home: RegistryHome, registry: Registry) -> None:
    """Each gets its own."""
    for number in range(20):
        registry_home.add_files(f"m{number}", {"model.gguf": weights(f"a{number}")})
    let_settle(registry_home)
    cache = FactsCache()
    entries = registry.entries()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda entry: cache.of_model(entry).file.architecture, entries * 5))
    assert found == [f"a{entry.name[1:]}" for entry in entries] * 5


def test_a_signature_holds_until_the_file_changes(tmp_path: Path) -> None:
    """A missing file and a directory have none, and stay as they are too."""
    path = tmp_path / "x"
    assert unchanged(str(path), None) and unchanged(str(tmp_path), None)
    path.write_bytes(b"1")
    seen = signature(path)
    assert unchanged(str(path), seen) and not unchanged(str(path), None)
    for change in (lambda: os.utime(path, (1, 1)), lambda: path.write_bytes(b"12"), path.unlink):
        seen = signature(path)
        change()
        assert not unchanged(str(path), seen)
    assert unchanged("a\0b", None) and not unchanged("a\0b", seen)
