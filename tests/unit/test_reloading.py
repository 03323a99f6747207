"""When files count as changed, and what then happens to the configuration."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.config import ConfigError, Problem
from app.server.reloading import Changes, Reloader

SOON = 10.0


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Two files, of which one is there."""
    (tmp_path / "a.yml").write_text("a")
    return [tmp_path / "a.yml", tmp_path / "b.yml"]


def set_time(path: Path, seconds: int) -> None:
    """Let the file have been changed at that time."""
    os.utime(path, (seconds, seconds))


def rewritten(path: Path) -> None:
    """Let the file have other bytes, and the size and time that it had."""
    before = path.stat()
    path.write_text("b" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, Callable[[list[Path]], object]] = {
    "content": lambda paths: paths[0].write_text("aa"),
    "time": lambda paths: set_time(paths[0], 5),
    "another file": lambda paths: (paths[0].rename(paths[0].with_name("old")),
                                   paths[0].write_text("a")),
    "mode": lambda paths: paths[0].chmod(0o640),
    "content, not the time": lambda paths: rewritten(paths[0]),
    "gone": lambda paths: paths[0].unlink(),
    "new": lambda paths: paths[1].write_text("b"),
    "no file": lambda paths: paths[1].mkdir(),
}


@pytest.mark.parametrize(("change", "counts"), [
    (change, name != "no file") for name, change in CHANGES.items()], ids=CHANGES)
def test_a_change_counts_once_it_is_seen_twice(
        paths: list[Path], change: Callable[[list[Path]], object], counts: bool) -> None:
    """And only once."""
    changes = Changes(lambda: paths)
    change(paths)
    assert [changes.settled() for _ in range(4)] == [False, counts, False, False]


def test_what_goes_on_changing_does_not_count(paths: list[Path]) -> None:
    """Until it is left alone; what is as before after all does not at all."""
    changes = Changes(lambda: paths)
    for number in range(5):
        set_time(paths[0], number)
        assert not changes.settled()
    known = Changes(lambda: paths)
    paths[1].write_text("b")
    assert not known.settled()
    paths[1].unlink()
    assert [known.settled() for _ in range(3)] == [False, False, False]


def test_a_file_that_is_named_anew_has_not_changed(paths: list[Path]) -> None:
    """It was read together with what names it; later it counts like the others."""
    named = paths[:1]
    changes = Changes(lambda: named)
    named.append(paths[1])
    changes.meet()
    assert [changes.settled() for _ in range(3)] == [False, False, False]
    paths[1].write_text("b")
    assert [changes.settled() for _ in range(3)] == [False, True, False]


class Reloads:
    """Counts reloads, which fail as they are told."""

    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self.count = 0
        self._news = threading.Condition()

    def __call__(self) -> None:
        with self._news:
            self.count += 1
            self._news.notify_all()
            if self.failures:
                raise self.failures.pop()

    def wait_for(self, count: int) -> None:
        """Block until there have been so many."""
        with self._news:
            assert self._news.wait_for(lambda: self.count >= count, SOON)


@pytest.fixture
def reloads() -> Reloads:
    """What is done to reload."""
    return Reloads()


@pytest.fixture
def reloader(paths: list[Path], reloads: Reloads) -> Iterator[Reloader]:
    """One that looks often."""
    found = Reloader(lambda: paths, reloads, interval=0.02)
    found.start()
    yield found
    found.close()


def test_a_change_and_a_word_reload(
        paths: list[Path], reloads: Reloads, reloader: Reloader) -> None:
    """A word also where nothing has changed; what it has read does not count as changed."""
    paths[1].write_text("b")
    reloads.wait_for(1)
    reloader.ask()
    reloads.wait_for(2)
    paths[1].write_text("bb")
    reloads.wait_for(3)
    assert reloads.count == 3


def test_what_fails_is_told_and_tried_again(
        reloads: Reloads, reloader: Reloader, caplog: pytest.LogCaptureFixture) -> None:
    """All problems of a configuration, a line each; whatever else fails with its trace."""
    caplog.set_level(logging.ERROR, "app")
    reloads.failures = [ValueError("unforeseen"), ConfigError([
        Problem("f.yml", "a.b", "must be good"), Problem("f.yml", "c", "must be better")])]
    for number in (1, 2, 3):
        reloader.ask()
        reloads.wait_for(number)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["the configuration is refused, and the one before it goes on to count:",
                    "  f.yml: a.b: must be good", "  f.yml: c: must be better",
                    "the configuration could not be read again"]
    assert caplog.records[-1].exc_info
