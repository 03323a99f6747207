"""Pulls that are stopped, killed or run out of disk: what is left, and that it can be gone on."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import namedtuple
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import set_client_factory

from app.catalog.hub.client import Hub
from app.catalog.hub.patience import Patience
from app.catalog.hub.pull import Wanted, pull
from app.catalog.hub.reference import parse
from app.catalog.problems import Cancelled, CannotWrite, HubUnavailable, NoSpace
from app.catalog.registry import Registry
from app.catalog.store import disk
from app.catalog.store.sweep import sweep
from tests.fakes.deaths import ROOT, deaths
from tests.fakes.hub import FakeHub, Fault
from tests.fakes.whole_gguf import LARGE, OTHER, PROJECTOR, SMALL
from tests.unit.catalog.hub.conftest import Pull

PATIENCE = 20.0
OF_ENVIRONMENT = Hub()  # made before there are forks, because what it imports takes a while


def is_whole(home: Path, data: bytes = LARGE) -> bool:
    """Whether the registry has one model with these bytes, and no rest of a download."""
    entries = Registry(home).entries()
    return (len(entries) == 1 and entries[0].first_file.read_bytes() == data
            and not list(home.glob("blobs/.*")) and not list(home.glob("models/*/.*")))


def held(where: str = "storage", cut: int = 1_000_000) -> Fault:
    """An answer that stops after so many bytes, until it is let go on."""
    return Fault(where, cut=cut, hold=threading.Event())


def pull_org_m(home: Path) -> None:
    """What the killed processes do; HF_ENDPOINT says where from."""
    # The certificates that loopback does without take longer to read than everything else.
    set_client_factory(lambda: httpx2.Client(verify=False, follow_redirects=True))
    for _ in pull(home, Wanted(parse("org/m")), OF_ENVIRONMENT, Patience((0,))):
        pass


def test_closing_the_events_ends_it(hub: FakeHub, tmp_path: Path) -> None:
    """The connection too; what came stays for the next pull."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    events = pull(tmp_path, Wanted(parse("org/m")), Hub(hub.url))
    for event in events:
        if event.completed:
            break
    events.close()
    left = next(tmp_path.glob("blobs/.*.partial")).stat().st_size
    assert left and not Registry(tmp_path).entries()
    for _ in pull(tmp_path, Wanted(parse("org/m")), Hub(hub.url)):
        pass
    assert hub.asked("storage")[-1].headers["Range"] == f"bytes={left}-"
    assert is_whole(tmp_path)


@pytest.mark.parametrize("waits", [(), (PATIENCE,)])
def test_it_can_be_cancelled(hub: FakeHub, bring: Pull, tmp_path: Path,
                             waits: tuple[float, ...]) -> None:
    """From another thread: while bytes come, and while it waits to try again."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    fault = held() if not waits else Fault("api", status=503)
    hub.faults = [fault]
    patience = Patience(waits)

    def cancel() -> None:
        if fault.hold:
            assert fault.reached.wait(PATIENCE)
        patience.cancelled.set()
        if fault.hold:
            fault.hold.set()

    timer = threading.Timer(0.1, cancel)
    timer.start()
    with pytest.raises(Cancelled, match="start it again and it goes on from there"):
        bring("org/m", patience)
    timer.join()
    assert not Registry(tmp_path).entries()
    bring("org/m")
    assert is_whole(tmp_path)


def test_a_killed_download_is_gone_on_with(hub: FakeHub, bring: Pull, tmp_path: Path) -> None:
    """By the next pull, from the byte where it was."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    fault = held()
    hub.faults = [fault]
    code = ("import sys; from pathlib import Path; from tests.unit.catalog.hub import "
            "test_pull_interrupted as t; t.pull_org_m(Path(sys.argv[1]))")
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT,
                               env={**os.environ, "HF_ENDPOINT": hub.url})
    assert fault.reached.wait(PATIENCE) and fault.hold
    partial = tmp_path / "blobs"
    while not [path for path in partial.glob(".*") if path.stat().st_size == fault.cut]:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    assert process.wait(PATIENCE) == -signal.SIGKILL
    fault.hold.set()
    assert not Registry(tmp_path).entries()
    bring("org/m")
    assert hub.asked("storage")[-1].headers["Range"] == "bytes=1000000-"
    assert is_whole(tmp_path)


@pytest.mark.parametrize("replacing", [False, True])
def test_a_kill_at_any_step_leaves_nothing_or_all(hub: FakeHub, bring: Pull, tmp_path: Path,
                                                  replacing: bool) -> None:
    """The old model, none or the new one is listed, always whole; the next pull mends the rest."""
    if replacing:
        old = hub.add("org/m", {"m-Q8_0.gguf": OTHER, "mmproj-F16.gguf": PROJECTOR})
        bring("org/m")
        tmp_path.joinpath("before").mkdir()
        for name in ("blobs", "models"):
            shutil.move(tmp_path / name, tmp_path / "before" / name)
        old.sha = "5" * 40
    hub.add("org/m", {"m-Q8_0.gguf": SMALL, "mmproj-BF16.gguf": PROJECTOR}, sha="5" * 40)
    left = deaths(pull_org_m, tmp_path, HF_ENDPOINT=hub.url)
    assert len(left) >= 20
    seen = set()
    for home in left:
        entries = Registry(home).entries()
        seen.add(tuple(entry.commit[:1] for entry in entries))
        for entry in entries:
            data = OTHER if entry.commit[:1] == "4" else SMALL
            assert entry.first_file.read_bytes() == data, home
            assert [(entry.directory / file.path).stat().st_size for file in entry.files] == [
                file.size for file in entry.files]
        for _ in pull(home, Wanted(parse("org/m")), Hub(hub.url)):
            pass
        assert Registry(home).entries()[0].first_file.read_bytes() == SMALL
        assert not list(home.glob("models/*/.*"))
        sweep(home)
        assert len(list((home / "blobs").iterdir())) == 2, home
    assert seen >= ({("4",), ("5",)} if replacing else {()})


def test_too_little_space_is_told_before_the_download(
        hub: FakeHub, bring: Pull, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there already is not asked room for."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE, "mmproj-F16.gguf": PROJECTOR})
    hub.faults = [Fault("storage", cut=1_999_000)]
    with pytest.raises(HubUnavailable):
        bring("org/m", Patience(()))
    asked = len(hub.requests)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9, 33_000_000))
    with pytest.raises(NoSpace, match="org/m:Q8_0 needs 33 MB .* has 33 MB free: make room"):
        bring("org/m")
    assert len(hub.requests) == asked + 1
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9, 34_000_000))
    bring("org/m")
    assert is_whole(tmp_path)


@pytest.mark.parametrize(("number", "kind", "said"), [
    (errno.ENOSPC, NoSpace, "became full: make room"), (errno.EDQUOT, NoSpace, "became full"),
    (errno.EIO, CannotWrite, "cannot be written .*: set LOOP_LOOP_HOME")])
def test_a_disk_that_fails_is_told(hub: FakeHub, bring: Pull, tmp_path: Path,
                                   monkeypatch: pytest.MonkeyPatch, number: int,
                                   kind: type[Exception], said: str) -> None:
    """In the midst of a download; once there is room again it goes on."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    written, write = 0, disk.write

    def failing(descriptor: int, data: bytes) -> None:
        nonlocal written
        written += len(data)
        if written > 1_000_000:
            raise OSError(number, os.strerror(number))
        write(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write", failing)
        with pytest.raises(kind, match=said):
            bring("org/m")
    assert not Registry(tmp_path).entries()
    bring("org/m")
    assert "Range" in hub.asked("storage")[-1].headers
    assert is_whole(tmp_path)


def test_a_registry_that_cannot_be_written_is_told(hub: FakeHub, bring: Pull,
                                                   tmp_path: Path) -> None:
    """In one sentence that names it and the setting."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    (tmp_path / "blobs").write_text("")
    with pytest.raises(CannotWrite, match="cannot be written .*: set LOOP_LOOP_HOME"):
        bring("org/m")


def test_a_link_in_place_of_a_download_is_not_followed(hub: FakeHub, bring: Pull,
                                                       tmp_path: Path) -> None:
    """Nothing is written where it leads."""
    repo = hub.add("org/m", {"m-Q8_0.gguf": SMALL})
    bring("org/m")
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    repo.files, repo.sha = {"m-Q8_0.gguf": OTHER}, "5" * 40
    hub.faults = [Fault("storage", cut=1)]
    with pytest.raises(HubUnavailable):
        bring("org/m", Patience(()))
    left = next(tmp_path.glob("blobs/.*.partial"))
    left.unlink()
    left.symlink_to(outside)
    bring("org/m")
    assert outside.read_bytes() == b"mine"
    assert is_whole(tmp_path, OTHER)


@pytest.mark.parametrize(("where", "cut"), [
    ("storage", 1_000_000), ("storage", None), ("resolve", None), ("api", None), ("api", 5)])
def test_it_can_be_cancelled_while_the_hub_is_silent(
        hub: FakeHub, bring: Pull, tmp_path: Path, where: str, cut: int | None) -> None:
    """Without the wait for the next byte or for the first one; what came stays."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    fault = Fault(where, cut=cut, hold=threading.Event())
    hub.faults = [fault]
    patience = Patience((PATIENCE,))
    events = pull(tmp_path, Wanted(parse("org/m")), Hub(hub.url, PATIENCE), patience)

    def cancel() -> None:
        assert fault.reached.wait(PATIENCE)
        patience.cancel()

    stopper = threading.Thread(target=cancel)
    stopper.start()
    with pytest.raises(Cancelled):
        for _ in events:
            pass
    stopper.join()
    assert fault.hold and not fault.hold.is_set()
    fault.hold.set()
    bring("org/m")
    assert is_whole(tmp_path)
