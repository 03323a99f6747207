"""Reading the files of models again."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event

import pytest

from app.catalog.problems import Cancelled
from app.catalog.progress import Progress
from app.catalog.registry import Registry
from app.catalog.store.verify import Checked, verify
from tests.fakes.registry_home import RegistryHome
from tests.fakes.whole_gguf import LARGE, OTHER, PROJECTOR, SMALL
from tests.unit.catalog.store.conftest import Put, sha256


def problems(home: Path) -> list[str]:
    """What is wrong with each file, in the order of the models."""
    return [event.problem for event in verify(Registry(home).entries())
            if isinstance(event, Checked)]


def test_good_files_are_good(put: Put, tmp_path: Path) -> None:
    """A file that models share is read once; how far it is is told."""
    put("a", {"m.gguf": LARGE, "mmproj.gguf": PROJECTOR})
    put("b", {"m.gguf": SMALL, "mmproj.gguf": PROJECTOR})
    events = list(verify(Registry(tmp_path).entries()))
    assert [event for event in events if isinstance(event, Checked)] == [
        Checked("a", "m.gguf", len(LARGE), ""), Checked("a", "mmproj.gguf", len(PROJECTOR), ""),
        Checked("b", "m.gguf", len(SMALL), ""), Checked("b", "mmproj.gguf", len(PROJECTOR), "")]
    read = [event.file for event in events if isinstance(event, Progress) and event.finished]
    assert read == ["m.gguf", "mmproj.gguf", "m.gguf"]


def test_damaged_files_are_told(put: Put, tmp_path: Path) -> None:
    """Other bytes, other sizes, and what is not there or no file, which is not waited for."""
    for name, data in (("a", SMALL), ("b", OTHER), ("c", LARGE), ("d", PROJECTOR)):
        put(name, {"m.gguf": data})
    blobs = tmp_path / "blobs"
    (blobs / f"sha256-{sha256(SMALL)}").write_bytes(bytes(len(SMALL)))
    (blobs / f"sha256-{sha256(OTHER)}").write_bytes(OTHER[:-1])
    (blobs / f"sha256-{sha256(LARGE)}").unlink()
    (blobs / f"sha256-{sha256(PROJECTOR)}").unlink()
    os.mkfifo(blobs / f"sha256-{sha256(PROJECTOR)}")
    assert problems(tmp_path) == [
        f"has other bytes: sha256:{sha256(bytes(len(SMALL)))}",
        f"has {len(OTHER) - 1} bytes, not {len(OTHER)}",
        "cannot be read: No such file or directory", "is no regular file"]


def test_a_file_without_a_hash_has_its_size_only(registry_home: RegistryHome) -> None:
    """As manifests of others may be; a hash in capitals is one."""
    registry_home.add("a", SMALL, files=[{"path": "model.gguf", "size": len(SMALL)}])
    registry_home.add("b", OTHER, files=[
        {"path": "model.gguf", "size": len(OTHER), "sha256": sha256(OTHER).upper()}])
    assert problems(registry_home.path) == ["", ""]


def test_it_can_be_stopped(put: Put, tmp_path: Path) -> None:
    """Between two pieces."""
    put("a", {"m.gguf": LARGE})
    stop = Event()
    events = verify(Registry(tmp_path).entries(), stop)
    next(events)
    stop.set()
    with pytest.raises(Cancelled):
        next(events)
