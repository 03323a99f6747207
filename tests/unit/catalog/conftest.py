"""Fixtures for tests of the catalog."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LogLines = Callable[[], list[str]]


@pytest.fixture
def log_lines(caplog: pytest.LogCaptureFixture) -> Iterator[LogLines]:
    """A function that gives the messages logged below ``app`` since it was last called."""
    logger = logging.getLogger("app")
    logger.addHandler(caplog.handler)

    def lines() -> list[str]:
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    propagates, logger.propagate = logger.propagate, False
    yield lines
    logger.propagate = propagates
    logger.removeHandler(caplog.handler)


@pytest.fixture
def age() -> Callable[[Path], None]:
    """A function that makes a file look as if it was written an hour ago."""
    def aged(path: Path) -> None:
        found = path.stat()
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns - 3600 * 10**9))
    return aged
