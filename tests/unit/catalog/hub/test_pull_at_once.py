"""Several pulls, and what removes things, at the same time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest

from app.catalog.hub.client import Hub
from app.catalog.hub.patience import Patience
from app.catalog.hub.pull import Wanted, pull
from app.catalog.hub.reference import parse
from app.catalog.problems import Cancelled, CatalogError
from app.catalog.progress import Progress
from app.catalog.registry import Registry
from app.catalog.store.blobs import Blobs, put_blob
from app.catalog.store.entries import remove
from app.catalog.store.partial import Partial
from app.catalog.store.sweep import sweep
from tests.fakes.deaths import ROOT
from tests.fakes.hub import FakeHub, Fault
from tests.fakes.processes import wait_until
from tests.fakes.whole_gguf import LARGE, OTHER, PROJECTOR, SMALL
from tests.unit.catalog.hub.conftest import Pull

PATIENCE = 30.0
PULL = """
import sys
from pathlib import Path
from app.catalog.hub.pull import Wanted, pull
from app.catalog.hub.reference import parse
for event in pull(Path(sys.argv[1]), Wanted(parse(sys.argv[2]))):
    print(event.status, event.completed, flush=True)
"""


class Pulling:
    """A pull in a thread: its events so far, and what it raised."""

    def __init__(self, hub: FakeHub, home: Path, model: str) -> None:
        self.events: list[Progress] = []
        self.error: Exception | None = None
        self.patience = Patience((0, 0))
        self._work = (home, Wanted(parse(model)), Hub(hub.url), self.patience)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            for event in pull(*self._work):
                self.events.append(event)
        except CatalogError as error:
            self.error = error

    def waits(self) -> bool:
        """Whether it has told how far another one is."""
        return any(event.digest for event in self.events)

    def join(self) -> Exception | None:
        """Wait for its end; what it raised."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.error

    def end(self) -> None:
        """Wait for its end, which is a success."""
        assert self.join() is None


@contextmanager
def held(hub: FakeHub, cut: int = 1_000_000) -> Iterator[Fault]:
    """The next download stops after so many bytes until the end of the with statement."""
    fault = Fault("storage", cut=cut, hold=threading.Event())
    hub.faults.append(fault)
    assert fault.hold
    try:
        yield fault
    finally:
        fault.hold.set()


def test_one_brings_it_and_the_other_waits(hub: FakeHub, tmp_path: Path) -> None:
    """And tells meanwhile how far the first one is."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    with held(hub) as fault:
        first = Pulling(hub, tmp_path, "org/m")
        assert fault.reached.wait(PATIENCE)
        second = Pulling(hub, tmp_path, "org/m")
        wait_until(second.waits, "the second pull")
    first.end()
    second.end()
    assert len(hub.asked("storage")) == 1
    assert second.events[-1].model == "org/m:Q8_0"
    assert 0 < second.events[1].completed < len(LARGE)
    assert Registry(tmp_path).entries()[0].first_file.read_bytes() == LARGE


def test_of_two_models_with_a_common_file(hub: FakeHub, tmp_path: Path) -> None:
    """It is brought once, and neither waits for the rest of the other."""
    hub.add("org/a", {"a-Q8_0.gguf": SMALL, "mmproj-F16.gguf": LARGE})
    hub.add("org/b", {"b-Q8_0.gguf": OTHER, "mmproj-F16.gguf": LARGE})
    with held(hub, 0) as of_a:  # the weights of a
        first = Pulling(hub, tmp_path, "org/a")
        assert of_a.reached.wait(PATIENCE)
        Pulling(hub, tmp_path, "org/b").end()
    first.end()
    assert len(hub.asked("storage")) == 3
    assert [entry.name for entry in Registry(tmp_path).entries()] == ["org/a:Q8_0", "org/b:Q8_0"]


def has_come(home: Path, fault: Fault) -> bool:
    """Whether all that the held answer sends is on the disk."""
    return any(path.stat().st_size == fault.cut for path in home.glob("blobs/.*.partial"))


def test_who_waits_takes_over_from_one_killed(hub: FakeHub, tmp_path: Path) -> None:
    """It goes on from the byte where that one was."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    with held(hub) as fault:
        first = started(hub, tmp_path)
        wait_until(lambda: has_come(tmp_path, fault), "the first bytes")
        second = Pulling(hub, tmp_path, "org/m")
        wait_until(second.waits, "the second pull")
        first.kill()
        first.communicate(timeout=PATIENCE)
    second.end()
    assert [seen.headers.get("Range") for seen in hub.asked("storage")] == [
        None, f"bytes={fault.cut}-"]
    assert Registry(tmp_path).entries()[0].first_file.read_bytes() == LARGE


def test_who_waits_takes_over_from_one_stopped(hub: FakeHub, tmp_path: Path) -> None:
    """Whoever does not want it any more does not end it for others."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    with held(hub) as fault:
        first = Pulling(hub, tmp_path, "org/m")
        wait_until(lambda: has_come(tmp_path, fault), "the first bytes")
        second = Pulling(hub, tmp_path, "org/m")
        wait_until(second.waits, "the second pull")
        first.patience.cancelled.set()
    second.end()
    assert isinstance(first.join(), Cancelled)
    assert Registry(tmp_path).entries()[0].first_file.read_bytes() == LARGE


def started(hub: FakeHub, home: Path) -> subprocess.Popen[str]:
    """A pull of org/m in a process of its own."""
    return subprocess.Popen([sys.executable, "-c", PULL, str(home), "org/m"], cwd=ROOT, text=True,
                            env={**os.environ, "HF_ENDPOINT": hub.url}, stdout=subprocess.PIPE)


def test_what_another_one_has_just_finished_is_not_brought(
        hub: FakeHub, bring: Pull, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look whether it is there and the right to bring it."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE})
    try_open = Blobs.try_open

    def late(self: Blobs, digest: str) -> Partial | None:
        monkeypatch.setattr(Blobs, "try_open", try_open)
        put_blob(tmp_path, BytesIO(LARGE), digest)
        return try_open(self, digest)

    monkeypatch.setattr(Blobs, "try_open", late)
    bring("org/m")
    assert not hub.asked("storage") and not list(tmp_path.glob("blobs/.*"))
    assert Registry(tmp_path).entries()[0].first_file.read_bytes() == LARGE


def test_two_processes_at_once(hub: FakeHub, tmp_path: Path) -> None:
    """The file is brought once, and both say that it is there."""
    hub.add("org/m", {"m-Q8_0.gguf": LARGE, "mmproj-F16.gguf": PROJECTOR})
    with held(hub) as fault:
        both = [started(hub, tmp_path) for _ in "ab"]
        assert fault.reached.wait(PATIENCE)
    said = [process.communicate(timeout=PATIENCE)[0] for process in both]
    assert [text.splitlines()[-1] for text in said] == ["success 0", "success 0"]
    assert len(hub.asked("storage")) == 2
    assert Registry(tmp_path).entries()[0].first_file.read_bytes() == LARGE


def test_what_is_being_brought_is_not_swept(hub: FakeHub, tmp_path: Path) -> None:
    """Neither the file that grows nor one that is whole but not listed yet."""
    hub.add("org/m", {"m-Q8_0.gguf": SMALL, "mmproj-F16.gguf": LARGE})
    hub.faults = [Fault("storage")]  # none for the weights
    with held(hub) as fault:
        work = Pulling(hub, tmp_path, "org/m")
        assert fault.reached.wait(PATIENCE)
        assert sweep(tmp_path) == []
    work.end()
    assert sweep(tmp_path) == []
    assert Registry(tmp_path).entries()[0].first_file.read_bytes() == SMALL


def test_removing_leaves_what_another_pull_claims(hub: FakeHub, bring: Pull,
                                                  tmp_path: Path) -> None:
    """A model goes while a new one that shares its file is on the way."""
    hub.add("org/a", {"a-Q8_0.gguf": SMALL})
    hub.add("org/b", {"b-Q8_0.gguf": SMALL, "mmproj-F16.gguf": LARGE})
    bring("org/a")
    with held(hub) as fault:
        work = Pulling(hub, tmp_path, "org/b")
        assert fault.reached.wait(PATIENCE)
        remove(tmp_path, "org/a:Q8_0")
        assert not Registry(tmp_path).entries()
    work.end()
    assert len(hub.asked("storage")) == 2
    assert Registry(tmp_path).entries()[0].first_file.read_bytes() == SMALL
