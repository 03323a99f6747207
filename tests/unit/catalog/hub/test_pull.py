"""A model of the hub in the registry: what is written, and what is told on the way."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import hf_hub_download

from app.catalog.problems import BadFile, BadName, CannotWrite, NameTaken, NotFound
from app.catalog.progress import Progress
from app.catalog.registry import Registry
from app.catalog.store.sweep import sweep
from tests.fakes.gguf_writer import Type
from tests.fakes.hub import SHA, FakeHub
from tests.fakes.whole_gguf import LARGE, OTHER, PARTS, PROJECTOR, SMALL, whole
from tests.unit.catalog.hub.conftest import Pull


def sha256(data: bytes) -> str:
    """Its hex digits."""
    return hashlib.sha256(data).hexdigest()


def listed(home: Path) -> list[str]:
    """The names of the models in the registry."""
    return [entry.name for entry in Registry(home).entries()]


def test_the_fake_hub_is_one(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's own download, which asks for more than ours, takes it for a hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    found = hf_hub_download("org/m", "m-Q8_0.gguf", endpoint=hub.url, cache_dir=tmp_path)
    assert Path(found).read_bytes() == SMALL


def test_the_registry_is_as_after_loop_pull(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """A blob under its hash, a relative link to it, and the manifest with its seven fields."""
    hub.add("example-org/Tiny-Coder-GGUF", {"Tiny-Coder-F32.gguf": SMALL, "README.md": b"x"})
    before = datetime.now(timezone.utc).replace(microsecond=0)
    bring("example-org/Tiny-Coder-GGUF:F32")
    directory = tmp_path / "models" / "example-org--Tiny-Coder-GGUF--F32"
    link = directory / "Tiny-Coder-F32.gguf"
    assert str(link.readlink()) == f"../../blobs/sha256-{sha256(SMALL)}"
    assert link.read_bytes() == SMALL
    manifest = json.loads((directory / "manifest.json").read_text("utf-8"))
    pulled = datetime.strptime(manifest.pop("pulledAt"), "%Y-%m-%dT%H:%M:%SZ")
    assert before <= pulled.replace(tzinfo=timezone.utc) <= datetime.now(timezone.utc)
    assert list(manifest.items()) == [
        ("name", "example-org/Tiny-Coder-GGUF:F32"), ("repo", "example-org/Tiny-Coder-GGUF"),
        ("revision", "main"), ("commit", SHA), ("quant", "F32"),
        ("files", [{"path": "Tiny-Coder-F32.gguf", "size": len(SMALL), "sha256": sha256(SMALL)}])]
    left = {path.name for path in tmp_path.rglob("*") if not path.is_dir()}
    assert left == {f"sha256-{sha256(SMALL)}", link.name, "manifest.json", ".registry.lock"}


@pytest.mark.parametrize("name", [
    "org/m", "hf.co/org/m", "huggingface.co/ORG/m:q4_k_m", "https://huggingface.co/ORG/M"])
def test_every_spelling_brings_the_same(hub: FakeHub, bring: Pull, tmp_path: Path,
                                        name: str) -> None:
    """Under the name of the repository, spelled as the hub does, and the quantisation."""
    hub.add("org/m", {"m-Q4_K_M.gguf": SMALL, "m-Q8_0.gguf": LARGE})
    assert bring(name)[-1] == Progress("success", model="org/m:Q4_K_M")
    assert listed(tmp_path) == ["org/m:Q4_K_M"]


def test_all_parts_and_the_projector_come(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """Where they lie in the repository, part 1 first."""
    files = {f"Q8_0/{path}": data for path, data in PARTS.items()}
    hub.add("org/m", {"mmproj-F16.gguf": PROJECTOR, **dict(reversed(files.items()))})
    bring("org/m")
    entry = Registry(tmp_path).entries()[0]
    assert [file.path for file in entry.files] == [*files, "mmproj-F16.gguf"]
    assert entry.first.path == "Q8_0/x-Q8_0-00001-of-00003.gguf"
    for file in entry.files:
        assert sha256((entry.directory / file.path).read_bytes()) == file.sha256


def test_the_events_are_those_of_ollama(hub: FakeHub, bring: Pull) -> None:
    """Each file with its digest and its bytes, which only grow."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE, "mmproj-F16.gguf": PROJECTOR})
    events = bring("org/m")
    assert [event.status for event in events if not event.digest] == [
        "pulling manifest", "verifying sha256 digest", "writing manifest", "success"]
    for data in (LARGE, PROJECTOR):
        own = [event for event in events if event.digest == f"sha256:{sha256(data)}"]
        assert {event.status for event in own} == {f"pulling {sha256(data)[:12]}"}
        assert {event.total for event in own} == {len(data)}
        counts = [event.completed for event in own]
        assert counts == sorted(set(counts)) and counts[-1] == len(data)


def test_what_is_there_is_not_brought_again(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """A second pull asks only what there is, and writes nothing."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    bring("org/m")
    manifest = next(tmp_path.glob("models/*/manifest.json"))
    written = manifest.stat()
    assert bring("org/m")[-1].model == "org/m:Q8_0"
    assert len(hub.asked("storage")) == 1
    assert (manifest.stat().st_ino, manifest.stat().st_mtime_ns) == (
        written.st_ino, written.st_mtime_ns)


def test_a_new_version_replaces_the_old_one(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """With its files, and without the blobs that only the old one needed."""
    repo = hub.add("org/m", {"m-Q8_0.gguf": LARGE, "mmproj-F16.gguf": PROJECTOR})
    bring("org/m")
    repo.files, repo.sha = {"m-Q8_0.gguf": SMALL}, "5" * 40
    bring("org/m")
    entry = Registry(tmp_path).entries()[0]
    assert (entry.commit, entry.first_file.read_bytes()) == ("5" * 40, SMALL)
    assert sorted(path.name for path in entry.directory.iterdir()) == [
        "m-Q8_0.gguf", "manifest.json"]
    assert [path.name for path in (tmp_path / "blobs").iterdir()] == [f"sha256-{sha256(SMALL)}"]


def test_models_share_what_is_the_same(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """One blob, brought once, stays until the last of them is gone."""
    hub.add("org/a", {"a-Q8_0.gguf": SMALL, "mmproj-F16.gguf": PROJECTOR})
    hub.add("org/b", {"b-Q8_0.gguf": OTHER, "mmproj-F16.gguf": PROJECTOR})
    bring("org/a")
    bring("org/b")
    assert len(hub.asked("storage")) == 3
    assert len(list((tmp_path / "blobs").iterdir())) == 3


def test_a_name_of_ones_own(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """As Ollama's clients want it that pulled without a tag."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    bring("org/m", name="hf.co/org/m:latest")
    assert listed(tmp_path) == ["hf.co/org/m:latest"]
    entry = Registry(tmp_path).find("hf.co/org/m")
    assert entry and (entry.repo, entry.quant) == ("org/m", "Q8_0")


def test_a_quantisation_that_no_name_tells_is_the_file_s(hub: FakeHub, bring: Pull,
                                                         tmp_path: Path) -> None:
    """It stands in the metadata."""
    hub.add("org/m", {"m.gguf": whole(("general.file_type", Type.UINT32, 15))})
    bring("org/m")
    entry = Registry(tmp_path).entries()[0]
    assert (entry.name, entry.quant) == ("org/m:latest", "Q4_K_M")


def test_a_revision_is_another_one(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """It is kept as it was asked for, beside the commit that it meant."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    bring(f"https://huggingface.co/org/m/tree/{SHA}")
    assert Registry(tmp_path).entries()[0].revision == SHA
    with pytest.raises(NotFound, match="org/m has no revision nope"):
        bring("https://huggingface.co/org/m/tree/nope")


def test_broken_links_are_mended(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """A model that is listed without its files is brought again."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    bring("org/m")
    next((tmp_path / "blobs").iterdir()).unlink()
    next(tmp_path.glob("models/*/*.gguf")).unlink()
    bring("org/m")
    assert Registry(tmp_path).entries()[0].first_file.read_bytes() == SMALL


def test_damaged_blobs_are_mended(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """One of another size or without a GGUF header always, any other where that is asked for."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    bring("org/m")
    blob = next((tmp_path / "blobs").iterdir())
    for damaged in (SMALL[:-1], bytes(len(SMALL))):
        blob.write_bytes(damaged)
        bring("org/m")
        assert blob.read_bytes() == SMALL
    blob.write_bytes(SMALL[:-1] + b"?")
    bring("org/m")
    assert blob.read_bytes() != SMALL
    bring("org/m", checked=True)
    assert blob.read_bytes() == SMALL


LONG = "x" * 250 + "-Q8_0.gguf"


@pytest.mark.parametrize("path", [
    "../m-Q8_0.gguf", "/m-Q8_0.gguf", "a/../../m-Q8_0.gguf", ".m-Q8_0.gguf", ".git/m-Q8_0.gguf",
    "m\n-Q8_0.gguf", "m\udcff-Q8_0.gguf", "m\0-Q8_0.gguf", LONG, "manifest.json/m-Q8_0.gguf",
    "Manifest.JSON/a/m-Q8_0.gguf"])
def test_a_path_that_leads_astray_is_refused(hub: FakeHub, bring: Pull, tmp_path: Path,
                                             path: str) -> None:
    """Before anything is written."""
    hub.add("org/m", {path: SMALL})
    with pytest.raises(BadFile) as caught:
        bring("org/m")
    assert str(caught.value).isprintable()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["a b-Q8_0.gguf", "größe-Q8_0.gguf", "a@b%20-Q8_0.gguf",
                                  "模型-Q8_0.gguf", "a#b?c-Q8_0.gguf"])
def test_an_unusual_path_is_kept(hub: FakeHub, bring: Pull, tmp_path: Path, path: str) -> None:
    """Spaces, other scripts and signs that mean something in addresses."""
    hub.add("org/m", {path: SMALL})
    bring("org/m")
    assert Registry(tmp_path).entries()[0].first_file == (
        tmp_path / "models" / "org--m--Q8_0" / path)


@pytest.mark.parametrize("name", ["..", "/abs", "a/../b", " ", "x" * 300, "a\nb", "a:b:c"])
def test_a_name_that_leads_astray_is_refused(hub: FakeHub, bring: Pull, tmp_path: Path,
                                             name: str) -> None:
    """The one it is to have in the registry."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    with pytest.raises(BadName, match="a model cannot be called"):
        bring("org/m", name=name)
    assert not list(tmp_path.iterdir()) and not hub.requests


def test_two_names_that_would_lie_in_one_place(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """The second one is refused before anything is brought."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    bring("org/m", name="a/b:c")
    asked: list[Any] = hub.asked("storage")
    with pytest.raises(NameTaken, match="'a--b:c' would lie where 'a/b:c' does"):
        bring("org/m", name="a--b:c")
    assert hub.asked("storage") == asked
    assert listed(tmp_path) == ["a/b:c"]


def test_a_hash_in_capitals(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """Is the same one."""
    repo = hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    sha256 = hashlib.sha256(SMALL).hexdigest().upper()
    repo.listed["m-Q8_0.gguf"] = {
        "lfs": {"sha256": sha256, "size": len(SMALL), "pointerSize": 130}}
    bring("org/m")
    assert Registry(tmp_path).entries()[0].first_file.read_bytes() == SMALL


def test_a_place_that_leads_elsewhere(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """Is told before anything is brought."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "org--m--Q8_0").symlink_to(tmp_path)
    with pytest.raises(CannotWrite, match="is a link, .*: remove it, or choose another name"):
        bring("org/m")
    assert not hub.asked("storage")


@pytest.mark.parametrize("files", [
    {"m-Q8_0.gguf": b"hello" * 100}, {"m-Q8_0.gguf": b""}, {"m-Q8_0.gguf": SMALL[:-1]},
    {"m-Q8_0.gguf": SMALL, "mmproj-F16.gguf": b"hello"}], ids=lambda files: str(len(str(files))))
def test_what_is_no_gguf_file_is_no_model(hub: FakeHub, bring: Pull, tmp_path: Path,
                                          files: dict[str, bytes]) -> None:
    """Though it is what the hub lists: each time that is told, nothing is listed, and all can go.

    A model of that name stays as it was.
    """
    hub.add("org/good", {"m-Q8_0.gguf": OTHER})
    bring("org/good", name="good")
    hub.add("org/m", files)
    for name in ("", "", "good"):
        with pytest.raises(BadFile, match="'org/m/m.*.gguf' is (no whole GGUF file|cut short)"):
            bring("org/m", name=name)
    assert listed(tmp_path) == ["good"]
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["good"]
    sweep(tmp_path)
    assert len(list((tmp_path / "blobs").iterdir())) == 1
    assert Registry(tmp_path).entries()[0].first_file.read_bytes() == OTHER
