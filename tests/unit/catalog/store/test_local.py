"""Files of this machine that become models."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from app.catalog.facts import FactsCache
from app.catalog.problems import BadFile, BadName, Cancelled, NameTaken, NoSpace
from app.catalog.progress import Progress
from app.catalog.registry import Registry
from app.catalog.store import disk, local
from app.catalog.store.blobs import Blobs
from app.catalog.store.local import Wanted, add
from tests.fakes.deaths import deaths
from tests.fakes.gguf_writer import Type
from tests.fakes.whole_gguf import LARGE, OTHER, PARTS, PROJECTOR, SMALL, whole
from tests.unit.catalog.store.conftest import blobs_in, sha256


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty registry."""
    return tmp_path / "home"


def file(folder: Path, name: str | bytes, data: bytes = SMALL) -> Path:
    """A file of that name."""
    path = Path(os.fsdecode(os.path.join(os.fsencode(folder), os.fsencode(name))))
    path.write_bytes(data)
    return path


def added(home: Path, path: Path, **wanted: Any) -> str:
    """The name of the model that the file becomes."""
    return list(add(home, Wanted(path, **wanted)))[-1].model


def test_the_file_itself_becomes_the_blob(home: Path, tmp_path: Path) -> None:
    """Without a second copy on the disk; it stays where it was."""
    path = file(tmp_path, "Tiny-Coder-F32.gguf")
    assert added(home, path) == "Tiny-Coder:F32"
    entry = Registry(home).entries()[0]
    assert (entry.quant, entry.repo, entry.files[0].sha256) == ("F32", "", sha256(SMALL))
    assert entry.first_file.samefile(path) and entry.first_file.is_symlink()
    path.unlink()
    assert entry.first_file.read_bytes() == SMALL
    assert blobs_in(home) == {f"sha256-{sha256(SMALL)}"}


def test_a_copy_is_another_file(home: Path, tmp_path: Path) -> None:
    """Which changes of the first one do not reach."""
    path = file(tmp_path, "m.gguf")
    added(home, path, copied=True)
    path.write_bytes(b"changed")
    assert Registry(home).entries()[0].first_file.read_bytes() == SMALL


def test_where_no_link_can_be_it_is_copied(home: Path, tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    """From another file system, say."""
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    path = file(tmp_path, "m.gguf")
    added(home, path)
    first = Registry(home).entries()[0].first_file
    assert first.read_bytes() == SMALL and not first.samefile(path)


def test_a_link_to_a_file_is_that_file(home: Path, tmp_path: Path) -> None:
    """The registry does not depend on the link."""
    link = tmp_path / "link-Q8_0.gguf"
    link.symlink_to(file(tmp_path, "m.gguf"))
    assert added(home, link) == "link:Q8_0"
    link.unlink()
    first = Registry(home).entries()[0].first_file
    assert first.read_bytes() == SMALL and not first.resolve().is_symlink()


@pytest.mark.parametrize("part", [0, 2])
def test_any_part_stands_for_all(home: Path, tmp_path: Path, part: int) -> None:
    """With the projector after them, under a name by which it is known."""
    paths = [file(tmp_path, name, data) for name, data in PARTS.items()]
    projector = file(tmp_path, "vision.gguf", PROJECTOR)
    assert added(home, paths[part], projector=projector) == "x:Q8_0"
    entry = Registry(home).entries()[0]
    assert [each.path for each in entry.files] == [*PARTS, "mmproj-vision.gguf"]
    assert entry.first.path == paths[0].name
    facts = FactsCache().of_model(entry)
    assert facts.entry is entry and facts.parameters == 64 * (1 + 2 + 3)


@pytest.mark.parametrize(("name", "pairs", "called"), [
    ("m.gguf", (), "m"), ("m", (), "m"), ("m-Q4_K_M.gguf", (), "m:Q4_K_M"),
    ("m.gguf", (("general.file_type", Type.UINT32, 15),), "m:Q4_K_M"),
    ("größe mit@zeichen.gguf", (), "größe mit@zeichen"), ("Q8_0.gguf", (), "Q8_0:Q8_0")])
def test_the_name_is_made_of_the_file_s(home: Path, tmp_path: Path, name: str, pairs: Any,
                                        called: str) -> None:
    """And of its quantisation, by its name or else by its metadata."""
    assert added(home, file(tmp_path, name, whole(*pairs))) == called
    assert [entry.name for entry in Registry(home).entries()] == [called]


@pytest.mark.parametrize("name", ["a:b:c.gguf", ".hidden.gguf", b"m\xff.gguf", "a\nb.gguf",
                                  "x" * 220 + ".gguf"])
def test_a_file_whose_name_is_none_for_a_model(home: Path, tmp_path: Path,
                                               name: str | bytes) -> None:
    """Can be given one, unless nothing in a registry can be called so; never a stack trace."""
    path = file(tmp_path, name)
    with pytest.raises(BadName, match="choose one with --name") as caught:
        added(home, path)
    assert str(caught.value).isprintable()
    if path.name.startswith("."):
        with pytest.raises(BadFile, match="too long or hidden"):
            added(home, path, name="mine")
        return
    assert added(home, path, name="mine") == "mine"
    stored = Registry(home).entries()[0].files[0].path
    assert stored.isprintable() and stored.encode()


@pytest.mark.parametrize(("data", "said"), [
    (b"", "no whole GGUF file"), (b"GGUF", "no whole GGUF file"), (SMALL[:-1], "is cut short"),
    (SMALL[:50], "no whole GGUF file"), (b"<html>", "not a GGUF file")])
def test_what_is_no_whole_gguf_is_refused(home: Path, tmp_path: Path, data: bytes,
                                          said: str) -> None:
    """As a model and as a projector; nothing is written."""
    bad, good = file(tmp_path, "bad.gguf", data), file(tmp_path, "good.gguf")
    for wanted in (Wanted(bad), Wanted(good, projector=bad)):
        with pytest.raises(BadFile, match=said):
            list(add(home, wanted))
    assert not home.exists()


def test_what_is_not_there_is_told(home: Path, tmp_path: Path) -> None:
    """A file, and a part of a split."""
    with pytest.raises(BadFile, match="none.gguf' cannot be read: No such file"):
        added(home, tmp_path / "none.gguf")
    with pytest.raises(BadFile, match="there is no .*-00002-of-00003.gguf"):
        added(home, file(tmp_path, "x-Q8_0-00001-of-00003.gguf"))
    with pytest.raises(BadFile, match="not a regular file"):
        added(home, tmp_path)


def test_a_name_that_is_taken_is_told_before_it_is_read(home: Path, tmp_path: Path) -> None:
    """A model is never replaced by accident."""
    added(home, file(tmp_path, "m.gguf"))
    events = add(home, Wanted(file(tmp_path, "n.gguf", OTHER), name="M"))
    with pytest.raises(NameTaken, match="there is a model 'm' already"):
        next(events)


def test_a_file_that_changes_is_refused(home: Path, tmp_path: Path) -> None:
    """While it is read; a download that goes on, say."""
    path = file(tmp_path, "m.gguf", LARGE)
    events = add(home, Wanted(path))
    next(events)
    path.write_bytes(LARGE + b"more")
    with pytest.raises(BadFile, match="changed meanwhile"):
        list(events)
    assert not Registry(home).entries() and not blobs_in(home)


def test_a_copy_that_changes_is_refused(home: Path, tmp_path: Path,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """Between reading and copying."""
    path = file(tmp_path, "m.gguf", LARGE)
    put = Blobs.put

    def changing(self: Blobs, source: Any, digest: str) -> Path:
        path.write_bytes(OTHER)
        return put(self, source, digest)

    monkeypatch.setattr(Blobs, "put", changing)
    with pytest.raises(BadFile, match="changed meanwhile"):
        added(home, path, copied=True)
    assert not Registry(home).entries() and not blobs_in(home)


def test_it_tells_how_far_it_is_and_can_be_stopped(home: Path, tmp_path: Path) -> None:
    """By its events, and by an event of the caller."""
    path = file(tmp_path, "m.gguf", LARGE)
    stop = Event()
    events = add(home, Wanted(path), stop)
    first = next(events)
    assert (first.status, first.total, first.file) == ("reading", len(LARGE), "m.gguf")
    stop.set()
    with pytest.raises(Cancelled):
        list(events)
    assert list(add(home, Wanted(path)))[-2:] == [
        Progress("writing manifest"), Progress("success", model="m")]


def test_room_for_a_copy_is_asked_for(home: Path, tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is made."""
    def refuse(folder: Path, needed: int, what: str) -> None:
        raise NoSpace(f"{needed} for {what}")

    monkeypatch.setattr(disk, "require_space", refuse)
    path = file(tmp_path, "m.gguf")
    with pytest.raises(NoSpace, match=f"{len(SMALL)} for a copy of .*m.gguf"):
        added(home, path, copied=True)
    added(home, path)


def add_both(home: Path) -> None:
    """What the killed processes do: one is linked, the other one copied."""
    for path, copied in ((home.parent / "a-Q8_0.gguf", False), (home.parent / "b.gguf", True)):
        if not Registry(home).find(path.stem.partition("-")[0] + (":Q8_0" if not copied else "")):
            list(local.add(home, Wanted(path, copied=copied)))


def test_a_kill_at_any_step_leaves_nothing_or_all(tmp_path: Path) -> None:
    """And the same done again comes to its end; the files themselves stay as they are."""
    file(tmp_path, "a-Q8_0.gguf", SMALL), file(tmp_path, "b.gguf", OTHER)
    left = deaths(add_both, tmp_path)
    assert len(left) > 10
    for home in left:
        for entry in Registry(home).entries():
            assert sha256(entry.first_file.read_bytes()) == entry.first.sha256, home
        add_both(home)
        assert len(Registry(home).entries()) == 2
        assert not list(home.glob("*/.*")) and not list(home.glob("models/*/.*"))
    assert (tmp_path / "a-Q8_0.gguf").read_bytes() == SMALL
