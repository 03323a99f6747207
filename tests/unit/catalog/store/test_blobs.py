"""Blobs: whole from their first moment, once, and not removed under anyone's feet."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest

from app.catalog.problems import BadName, CannotWrite, NoSpace, WrongContent
from app.catalog.store import disk, locks
from app.catalog.store.blobs import Blobs, hex_of, present, put_blob, remove_unclaimed
from app.catalog.store.sweep import sweep
from tests.fakes.processes import wait_until
from tests.fakes.whole_gguf import LARGE, SMALL
from tests.unit.catalog.store.conftest import blobs_in, sha256

DIGEST = sha256(LARGE)


class Failing(BytesIO):
    """A source that breaks off after its first piece."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell():
            raise ConnectionError("gone")
        return super().read(size)


@pytest.mark.parametrize("form", ["sha256:{}", "sha256-{}", "{}"])
def test_a_digest_in_each_of_its_forms(tmp_path: Path, form: str) -> None:
    """Also in capitals."""
    put_blob(tmp_path, BytesIO(LARGE), form.format(DIGEST.upper()))
    assert present(tmp_path, form.format(DIGEST)) == len(LARGE)
    assert blobs_in(tmp_path) == {f"sha256-{DIGEST}"}


@pytest.mark.parametrize("digest", [
    "", "sha256:", "sha256:../../x", DIGEST[:-1], DIGEST + "0", "md5:" + DIGEST, "g" * 64,
    "\udcff" * 64, DIGEST + "\n", "sha256:/" + DIGEST])
def test_what_is_no_digest_is_refused(tmp_path: Path, digest: str) -> None:
    """Before it becomes a path."""
    for use in (hex_of, lambda text: present(tmp_path, text),
                lambda text: put_blob(tmp_path, BytesIO(), text)):
        with pytest.raises(BadName, match="is no SHA-256 digest"):
            use(digest)


def test_wrong_bytes_leave_nothing(tmp_path: Path) -> None:
    """The message has both digests, as Ollama's clients know it."""
    with pytest.raises(WrongContent, match=f"expected sha256:{DIGEST}, got sha256:{sha256(SMALL)}"):
        put_blob(tmp_path, BytesIO(SMALL), DIGEST)
    assert not blobs_in(tmp_path) and present(tmp_path, DIGEST) is None


def test_a_source_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    """What it raises comes through."""
    with pytest.raises(ConnectionError):
        put_blob(tmp_path, Failing(LARGE), DIGEST)
    assert not blobs_in(tmp_path)


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is the system's; whoever knows what for makes a sentence of it."""
    def full(descriptor: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "write", full)
    with pytest.raises(OSError, match="No space left"):
        put_blob(tmp_path, BytesIO(LARGE), DIGEST)
    assert not blobs_in(tmp_path)


def test_a_blob_that_is_there_is_not_read_again(tmp_path: Path) -> None:
    """Nor written."""
    put_blob(tmp_path, BytesIO(LARGE), DIGEST)
    put_blob(tmp_path, Failing(), DIGEST)
    assert present(tmp_path, DIGEST) == len(LARGE)


def test_the_rest_of_an_earlier_try_is_written_over(tmp_path: Path) -> None:
    """A stream begins at its beginning."""
    with Blobs(tmp_path) as blobs:
        blobs.unfinished(DIGEST).write_bytes(LARGE + b"more")
        blobs.put(BytesIO(LARGE), DIGEST)
    assert present(tmp_path, DIGEST) == len(LARGE)


def test_two_at_once_write_one_after_the_other(tmp_path: Path) -> None:
    """The second one finds it there."""
    first = Blobs(tmp_path)
    with first:
        made = first.try_open(DIGEST)
        assert made and first.try_open(DIGEST) is None
        waiting = threading.Thread(target=put_blob, args=(tmp_path, Failing(), DIGEST))
        waiting.start()
        made.write(LARGE)
        first.finish(made, DIGEST)
        made.close()
        waiting.join(20)
    assert not waiting.is_alive() and blobs_in(tmp_path) == {f"sha256-{DIGEST}"}


def test_who_waits_can_be_told_to_stop(tmp_path: Path) -> None:
    """By what it calls meanwhile; an unfinished blob without a byte leaves no file."""
    def stop() -> None:
        raise InterruptedError

    with Blobs(tmp_path) as blobs:
        made = blobs.try_open(DIGEST)
        assert made
        with pytest.raises(InterruptedError):
            put_blob(tmp_path, BytesIO(LARGE), DIGEST, stop)
        made.close()
    assert not blobs_in(tmp_path)


def test_a_claimed_blob_stays(tmp_path: Path) -> None:
    """Until the last of those that work with it has ended."""
    put_blob(tmp_path, BytesIO(SMALL), sha256(SMALL))
    with Blobs(tmp_path) as one, Blobs(tmp_path) as other:
        path = one.claim(sha256(SMALL))
        assert path and other.claim(sha256(SMALL), len(SMALL)) == path
        assert not remove_unclaimed(path)
    assert remove_unclaimed(path) and not remove_unclaimed(path)


def test_a_blob_that_goes_while_it_is_claimed_is_none(tmp_path: Path) -> None:
    """Whoever removes it has it alone; whoever waits for that finds it gone."""
    put_blob(tmp_path, BytesIO(SMALL), sha256(SMALL))
    found: list[Path | None] = []
    with Blobs(tmp_path) as blobs:
        path = blobs.path(sha256(SMALL))
        waiting = threading.Thread(target=lambda: found.append(blobs.claim(sha256(SMALL))))
        with path.open("rb") as held:
            assert locks.try_lock(held.fileno())
            waiting.start()
            wait_until(lambda: _waits_for(path), "the claim")
            path.unlink()
        waiting.join(20)
    assert found == [None]


def _waits_for(path: Path) -> bool:
    """Whether somebody waits for the lock of that file."""
    inode = f":{path.stat().st_ino} "
    listed = Path("/proc/locks").read_text("ascii").splitlines()
    return any("->" in line and inode in line for line in listed)


@pytest.mark.parametrize("again", [False, True])
def test_an_unfinished_blob_that_goes_while_it_is_opened(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    """Another one has finished or removed it: what is opened is what is there now."""
    try_lock = locks.try_lock
    with Blobs(tmp_path) as blobs:
        path = blobs.unfinished(DIGEST)

        def late(descriptor: int) -> bool:
            monkeypatch.setattr(locks, "try_lock", try_lock)
            path.unlink()
            if again:
                path.write_bytes(LARGE)
            return try_lock(descriptor)

        path.write_bytes(b"old")
        monkeypatch.setattr(locks, "try_lock", late)
        made = blobs.try_open(DIGEST)
        assert made and locks.is_at(made.descriptor, path)
        assert list(made.read_on()) == ([2**20, len(LARGE)] if again else [])
        made.close()


def test_a_file_is_adopted_once(tmp_path: Path) -> None:
    """A second time changes nothing, and leaves nothing behind."""
    file = tmp_path / "file"
    file.write_bytes(SMALL)
    for _ in range(2):
        with Blobs(tmp_path) as blobs:
            path = blobs.adopt(file, sha256(SMALL))
        assert path and path.samefile(file)
        assert blobs_in(tmp_path) == {f"sha256-{sha256(SMALL)}"}


def test_a_blob_of_another_size_is_none(tmp_path: Path) -> None:
    """It is damaged, and can be replaced."""
    put_blob(tmp_path, BytesIO(SMALL), sha256(SMALL))
    with Blobs(tmp_path) as blobs:
        blobs.path(sha256(SMALL)).write_bytes(SMALL[1:])
        assert blobs.claim(sha256(SMALL), len(SMALL)) is None
        assert remove_unclaimed(blobs.path(sha256(SMALL)))


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/null"),
                                  lambda path: path.symlink_to("nowhere")])
def test_what_is_no_file_makes_way(tmp_path: Path, make: object) -> None:
    """Where a blob is to grow; it is not followed or waited for."""
    with Blobs(tmp_path) as blobs:
        make(blobs.unfinished(DIGEST))
        blobs.put(BytesIO(LARGE), DIGEST)
    assert blobs_in(tmp_path) == {f"sha256-{DIGEST}"}
    assert not (tmp_path / "blobs" / f"sha256-{DIGEST}").is_symlink()


def test_a_dangling_link_can_be_removed(tmp_path: Path) -> None:
    """In the place of a blob."""
    path = tmp_path / "blob"
    path.symlink_to("nowhere")
    assert remove_unclaimed(path) and not path.is_symlink()


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    """After a word to whoever waits; it is free when its holder is through."""
    waited, entered = threading.Event(), threading.Event()

    def wait() -> None:
        with locks.alone(tmp_path / "lock", waited.set):
            entered.set()

    with locks.alone(tmp_path / "lock"):
        other = threading.Thread(target=wait)
        other.start()
        assert waited.wait(20) and not entered.is_set()
    other.join(20)
    assert entered.is_set()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("../outside", path)],
                         ids=["pipe", "link"])
def test_what_lies_in_place_of_a_lock(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Is neither waited for nor followed."""
    home = tmp_path / "home"
    home.mkdir()
    make(home / ".registry.lock")
    with suppress(CannotWrite):
        sweep(home)
    assert not (tmp_path / "outside").exists()


def test_room_is_asked_for_with_some_spare(tmp_path: Path) -> None:
    """More than any disk has is refused, nothing at all never is."""
    disk.require_space(tmp_path, 1, "it")
    disk.require_space(tmp_path / "none", 0, "it")
    with pytest.raises(NoSpace, match="^it needs .* MB on the disk of .*: make room"):
        disk.require_space(tmp_path, 2**60, "it")
