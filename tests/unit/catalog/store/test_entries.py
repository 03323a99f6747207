"""Models put into the registry, replaced, copied and removed."""

from __future__ import annotations

import json
import os
from io import BytesIO
from pathlib import Path

import pytest

from app.catalog.manifest import FileEntry
from app.catalog.problems import BadFile, BadName, CannotWrite, NameTaken, NotFound
from app.catalog.registry import Registry
from app.catalog.store import entries
from app.catalog.store.blobs import put_blob
from app.catalog.store.manifests import manifest
from app.catalog.store.sweep import sweep
from tests.fakes.deaths import deaths
from tests.fakes.registry_home import RegistryHome
from tests.fakes.whole_gguf import OTHER, PROJECTOR, SMALL
from tests.unit.catalog.store.conftest import ORIGIN, Put, blobs_in, put_model, sha256


def listed(home: Path) -> dict[str, bytes]:
    """The models by name, with the bytes of their first files."""
    return {entry.name: entry.first_file.read_bytes() for entry in Registry(home).entries()}


def test_a_model_is_replaced_under_any_spelling(put: Put, tmp_path: Path) -> None:
    """In its own directory, so that it is not there twice."""
    put("org/m:Q8_0", {"m.gguf": SMALL})
    put("ORG/m:q8_0", {"m.gguf": OTHER})
    assert listed(tmp_path) == {"ORG/m:q8_0": OTHER}
    assert len(list((tmp_path / "models").iterdir())) == 1
    assert blobs_in(tmp_path) == {f"sha256-{sha256(OTHER)}"}


def test_a_model_is_not_replaced_unless_wanted(put: Put, tmp_path: Path) -> None:
    """It stays as it is."""
    put("m", {"m.gguf": SMALL})
    with pytest.raises(NameTaken, match="there is a model 'm' already: remove it first"):
        put("M:latest", {"m.gguf": OTHER}, replacing=False)
    assert listed(tmp_path) == {"m": SMALL}


def test_files_of_others_stay(put: Put, tmp_path: Path) -> None:
    """What somebody has put beside a model is left alone when it is replaced, and removed."""
    put("m", {"m.gguf": SMALL, "sub/mmproj.gguf": PROJECTOR})
    notes = tmp_path / "models" / "m" / "notes.txt"
    notes.write_text("mine")
    put("m", {"m.gguf": OTHER})
    assert sorted(path.name for path in notes.parent.iterdir()) == [
        "m.gguf", "manifest.json", "notes.txt"]
    entries.remove(tmp_path, "m")
    assert [path.name for path in notes.parent.iterdir()] == ["notes.txt"]
    assert not listed(tmp_path) and not blobs_in(tmp_path)


def test_the_rest_of_an_interrupted_change_goes(put: Put, tmp_path: Path) -> None:
    """Links that belong to no model, finished or not; a file in the way of a link too."""
    put("m", {"old.gguf": SMALL, "sub/part.gguf": OTHER})
    directory = tmp_path / "models" / "m"
    (directory / "manifest.json").rename(directory / ".manifest.json")
    (directory / "old.gguf").rename(directory / ".old.gguf")
    (directory / "m.gguf").write_bytes(b"in the way")
    put("m", {"m.gguf": PROJECTOR})
    assert sorted(path.name for path in directory.iterdir()) == ["m.gguf", "manifest.json"]
    assert listed(tmp_path) == {"m": PROJECTOR}


def test_the_rest_of_a_change_goes_with_the_model(put: Put, tmp_path: Path) -> None:
    """Of one that was killed, or for which there was no room."""
    put("m", {"m.gguf": SMALL})
    directory = tmp_path / "models" / "m"
    (directory / ".manifest.json").write_bytes(b"{")
    (directory / ".new.gguf").symlink_to(os.readlink(directory / "m.gguf"))
    entries.remove(tmp_path, "m")
    assert not directory.exists() and not blobs_in(tmp_path)


def test_an_odd_registry_is_written_all_the_same(put: Put, tmp_path: Path) -> None:
    """Manifests that are none, circles of links, pipes, names that are no UTF-8: all stay."""
    models = tmp_path / "models"
    put("a", {"m.gguf": SMALL})
    (models / "a" / "loop").symlink_to("..")
    (models / "x").symlink_to("x")
    for number, raw in enumerate((b"", b"{", b"[]", b"null", b'{"name":5}', b" " * 2_000_000)):
        (models / str(number)).mkdir()
        (models / str(number) / "manifest.json").write_bytes(raw)
    (models / "pipe").mkdir()
    os.mkfifo(models / "pipe" / "manifest.json")
    os.mkdir(os.fsencode(models) + b"/\xff")
    before = set(models.iterdir())
    put("b", {"m.gguf": OTHER})
    entries.copy(tmp_path, "b", "c")
    entries.remove(tmp_path, "b")
    assert listed(tmp_path) == {"a": SMALL, "c": OTHER}
    assert set(models.iterdir()) - {models / "c"} == before
    assert [each.path.name for each in sweep(tmp_path)] == ["\udcff"]  # empty


def test_only_a_manifest_of_the_same_files_is_written_alone(put: Put, tmp_path: Path) -> None:
    """Links that are right are not touched."""
    put("m", {"m.gguf": SMALL})
    link = tmp_path / "models" / "m" / "m.gguf"
    made = link.lstat().st_ino
    put("m", {"m.gguf": SMALL})
    assert link.lstat().st_ino == made


def test_a_model_whose_blob_went_is_not_listed(tmp_path: Path) -> None:
    """Whoever removed it by hand, there is no half model."""
    file = FileEntry("m.gguf", 1, sha256(SMALL))
    with pytest.raises(CannotWrite, match="the blob of m.gguf was removed meanwhile"):
        entries.put(tmp_path, manifest("m", ORIGIN, "", [file]))
    assert not listed(tmp_path)


def test_text_that_is_no_utf_8_can_be_kept(tmp_path: Path) -> None:
    """Half a surrogate pair, as JSON can carry it."""
    put_blob(tmp_path, BytesIO(SMALL), sha256(SMALL))
    file = FileEntry("m.gguf", len(SMALL), sha256(SMALL))
    entries.put(tmp_path, manifest("m", ORIGIN, "", [file], {"system": "a\ud800\u2028é"}))
    entry = Registry(tmp_path).find("m")
    assert entry and entry.modelfile == {"system": "a\ud800\u2028é"}


@pytest.mark.parametrize("where", ["models/m", "models/m/sub"])
def test_nothing_is_written_where_a_link_leads(put: Put, tmp_path: Path, where: str) -> None:
    """A model's directory, or one in it, that lies outside of the registry."""
    home, outside = tmp_path / "home", tmp_path / "outside"
    outside.mkdir()
    (home / where).parent.mkdir(parents=True)
    (home / where).symlink_to(outside)
    with pytest.raises(CannotWrite):
        put_model(home, "m", {"sub/m.gguf": SMALL})
    assert not list(outside.iterdir())


def test_nothing_is_removed_where_a_link_leads(tmp_path: Path) -> None:
    """Of a model that lies outside only the link goes."""
    outside, home = tmp_path / "outside", tmp_path / "home"
    put_model(outside, "m", {"m.gguf": SMALL})
    (home / "models").mkdir(parents=True)
    (home / "models" / "m").symlink_to(outside / "models" / "m")
    assert listed(home) == {"m": SMALL}
    entries.remove(home, "m")
    assert not listed(home)
    assert listed(outside) == {"m": SMALL}


def test_removing_by_a_name_with_a_path_does_nothing(put: Put, tmp_path: Path) -> None:
    """Only names of models count."""
    put("m", {"m.gguf": SMALL})
    for name in ("../m", "models/m", ".", "..", "/", "", "none", "m\0", "\udcff"):
        with pytest.raises(NotFound, match="there is no model"):
            entries.remove(tmp_path, name)
    assert listed(tmp_path) == {"m": SMALL}


def test_a_model_of_loop_pull_is_removed(registry_home: RegistryHome) -> None:
    """With absolute links, hashes in capitals or none, and files of its own."""
    registry_home.add("a", SMALL)
    directory = registry_home.add("b", OTHER, files=[{"path": "model.gguf"}, {"path": "own.gguf"}])
    (directory / "own.gguf").write_bytes(b"x")
    entries.remove(registry_home.path, "b")
    assert not directory.exists()
    assert blobs_in(registry_home.path) == {f"sha256-{sha256(SMALL)}"}


@pytest.mark.parametrize("path", ["a" * 5000, "sub", "model.gguf/x", "loop/x", "a\x1b[31m\n"])
def test_a_file_that_cannot_be_is_no_obstacle(registry_home: RegistryHome, path: str) -> None:
    """To the end of a model whose manifest names one."""
    directory = registry_home.add("b", OTHER, files=[{"path": "model.gguf"}, {"path": path}])
    (directory / "sub").mkdir()
    (directory / "loop").symlink_to("loop")
    entries.remove(registry_home.path, "b")
    assert not Registry(registry_home.path).entries() and not blobs_in(registry_home.path)


def test_blobs_that_others_need_stay(put: Put, tmp_path: Path) -> None:
    """Also one whose manifest is damaged, as long as its links are there."""
    put("a", {"m.gguf": SMALL, "mmproj.gguf": PROJECTOR})
    put("b", {"m.gguf": OTHER, "mmproj.gguf": PROJECTOR})
    put("c", {"m.gguf": SMALL})
    (tmp_path / "models" / "c" / "manifest.json").write_text("{")
    entries.remove(tmp_path, "a")
    assert blobs_in(tmp_path) == {f"sha256-{sha256(data)}" for data in (SMALL, OTHER, PROJECTOR)}
    entries.remove(tmp_path, "b")
    assert blobs_in(tmp_path) == {f"sha256-{sha256(SMALL)}"}


def test_a_copy_shares_the_files(put: Put, tmp_path: Path) -> None:
    """And is a model of its own: each can be removed."""
    put("org/a:x", {"m.gguf": SMALL})
    entries.copy(tmp_path, "ORG/a:X", "b/c:d")
    assert listed(tmp_path) == {"org/a:x": SMALL, "b/c:d": SMALL}
    entry = Registry(tmp_path).find("b/c:d")
    assert entry and (entry.repo, entry.commit, entry.quant) == ("org/m", "4b1c", "Q8_0")
    assert blobs_in(tmp_path) == {f"sha256-{sha256(SMALL)}"}
    entries.remove(tmp_path, "org/a:x")
    assert listed(tmp_path) == {"b/c:d": SMALL}


def test_a_copy_replaces(put: Put, tmp_path: Path) -> None:
    """The model that had the name, and its blobs; onto itself it changes nothing."""
    put("a", {"m.gguf": SMALL})
    put("b", {"m.gguf": OTHER})
    entries.copy(tmp_path, "a", "b")
    entries.copy(tmp_path, "b", "B:latest")
    assert listed(tmp_path) == {"a": SMALL, "b": SMALL}
    assert blobs_in(tmp_path) == {f"sha256-{sha256(SMALL)}"}


def test_what_cannot_be_copied_is_told(put: Put, tmp_path: Path) -> None:
    """An unknown model, an impossible name, and files that are no blobs."""
    put("a", {"m.gguf": SMALL})
    with pytest.raises(NotFound, match="there is no model 'x'"):
        entries.copy(tmp_path, "x", "b")
    with pytest.raises(BadName):
        entries.copy(tmp_path, "a", "../b")
    manifest_path = tmp_path / "models" / "a" / "manifest.json"
    data = json.loads(manifest_path.read_text("utf-8"))
    del data["files"][0]["sha256"]
    manifest_path.write_text(json.dumps(data))
    with pytest.raises(BadFile, match="m.gguf of 'a' is not among the blobs"):
        entries.copy(tmp_path, "a", "b")
    assert listed(tmp_path) == {"a": SMALL}


def change_all(home: Path) -> None:
    """What the killed processes do to models a and b, which share a projector."""
    entries.copy(home, "a", "c")
    put_model(home, "a", {"m.gguf": OTHER})
    entries.remove(home, "b")


def test_a_kill_at_any_step_leaves_whole_models(tmp_path: Path) -> None:
    """While copying, replacing and removing; the same done again comes to its end."""
    put_model(tmp_path / "before", "a", {"m.gguf": SMALL, "mmproj.gguf": PROJECTOR})
    put_model(tmp_path / "before", "b", {"m.gguf": b"b", "mmproj.gguf": PROJECTOR})
    left = deaths(change_all, tmp_path)
    assert len(left) > 20
    for home in left:
        for entry in Registry(home).entries():
            for file in entry.files:
                data = (entry.directory / file.path).read_bytes()
                assert sha256(data) == file.sha256, (home, entry.name)
        if "a" in listed(home):
            entries.copy(home, "a", "c")
        put_model(home, "a", {"m.gguf": OTHER})
        if "b" in listed(home):
            entries.remove(home, "b")
        assert {"a": OTHER} == {n: data for n, data in listed(home).items() if n != "c"}
        assert not list(home.glob("models/[ac]/.*"))
