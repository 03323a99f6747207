"""An engine's log: made anew, bounded, and no reason for an engine not to run."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from app.engines import logfile
from app.engines.logfile import LogFile
from tests.fakes.processes import wait_until
from tests.unit.engines.conftest import Start


def test_the_one_before_is_kept(tmp_path: Path) -> None:
    """A log is made anew, directories too; that of the start before is beside it."""
    path = tmp_path / "logs" / "org" / "model:tag.log"
    for text in (b"first\n", b"second\n", b"third\n"):
        log = LogFile(path)
        log.write(text)
        assert path.read_bytes() == text
        log.close()
        log.write(b"late\n")
    assert path.read_bytes() == b"third\n"
    assert sorted(os.listdir(path.parent)) == ["model:tag.log", "model:tag.log.1"]
    assert path.with_name("model:tag.log.1").read_bytes() == b"second\n"


def test_each_of_several_at_a_time_has_its_own(tmp_path: Path) -> None:
    """And none takes away what another one writes; a name is free again after its end."""
    path = tmp_path / "org--model.v1--q8.log"
    second = tmp_path / "org--model.v1--q8-2.log"
    logs = [LogFile(path) for _ in range(3)]
    for number, log in enumerate(logs, 1):
        log.write(b"%d\n" % number)
    found = [each.read_bytes() for each in (path, second, tmp_path / "org--model.v1--q8-3.log")]
    assert found == [b"1\n", b"2\n", b"3\n"]
    logs[1].close()
    again = LogFile(path)
    again.write(b"again\n")
    assert second.read_bytes() == b"again\n"
    assert (tmp_path / "org--model.v1--q8-2.log.1").read_bytes() == b"2\n"
    for log in [*logs, again]:
        log.close()


def test_who_grows_too_large_beside_another_keeps_its_own(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is made anew by itself."""
    monkeypatch.setattr(logfile, "LARGEST", 10)
    one, other = LogFile(tmp_path / "a.log"), LogFile(tmp_path / "a.log")
    for number in range(1, 4):
        one.write(b"one%d ..." % number)
        other.write(b"other%d ." % number)
    one.close()
    other.close()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a.log": b"one3 ...", "a.log.1": b"one2 ...",
        "a-2.log": b"other3 .", "a-2.log.1": b"other2 ."}


def test_it_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its largest size it is made anew, so the last part of what was written is there."""
    monkeypatch.setattr(logfile, "LARGEST", 10)
    log = LogFile(tmp_path / "log")
    for number in range(1, 10):
        log.write(b"%d234" % number)
    log.close()
    assert (tmp_path / "log").read_bytes() == b"9234"
    assert (tmp_path / "log.1").read_bytes() == b"72348234"


def _beside_a_file(tmp_path: Path) -> Path:
    (tmp_path / "file").touch()
    return tmp_path / "file" / "log"


def _where_nothing_can_be_renamed(tmp_path: Path) -> Path:
    (tmp_path / "log").write_bytes(b"before\n")
    (tmp_path / "log.1").mkdir()
    return tmp_path / "log"


def _full(tmp_path: Path) -> Path:
    """Writing is what fails."""
    (tmp_path / "full").symlink_to("/dev/full")
    return tmp_path / "full"


@pytest.mark.parametrize("unwritable", [_beside_a_file, _where_nothing_can_be_renamed])
def test_an_unwritable_log_is_no_obstacle(
        start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture, unwritable: object) -> None:
    """The engine runs, its last lines are known, and the gateway's log says so once."""
    assert callable(unwritable)
    path = unwritable(tmp_path)
    with caplog.at_level(logging.WARNING):
        process = start("echo one; sleep 0.05; echo two; exit 3", log=path)
        assert process.wait(10)
    assert process.last_lines() == ["one", "two"]
    [record] = caplog.records
    assert record.getMessage().startswith(f"what the engine writes is not kept: {path}: ")


def test_a_full_disk_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                    caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be written is told once, and nothing is raised."""
    monkeypatch.setattr(Path, "replace", lambda *_: None)  # leaves the device where it is
    log = LogFile(_full(tmp_path))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            log.write(b"line\n")
    log.close()
    assert [record.getMessage() for record in caplog.records] == [
        f"what the engine writes is not kept: {tmp_path / 'full'}: No space left on device"]


def test_a_flood_ends_in_two_small_files(start: Start, home: Path,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    """What an engine writes is read as fast as it comes, and its end is there."""
    monkeypatch.setattr(logfile, "LARGEST", 200_000)
    process = start("yes | head -c 5000000; head -c 5000000 /dev/zero; echo; echo end")
    wait_until(lambda: process.last_line() == "end", "the last line")
    assert process.wait(10)
    path = home / "logs" / "engine.log"
    assert path.read_bytes().endswith(b"\0\nend\n")
    assert sum(file.stat().st_size for file in path.parent.iterdir()) <= 400_000
