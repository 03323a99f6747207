"""Fixtures for tests of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.registry_home import RegistryHome


@pytest.fixture
def registry_home(tmp_path: Path) -> RegistryHome:
    """An empty registry in a directory of its own."""
    return RegistryHome(tmp_path / "home")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[Any]:
    """Reports travel between processes as UTF-8; names of files in a log may not be that."""
    report = yield
    report.sections = [(name, _utf_8(text)) for name, text in report.sections]
    return report


def _utf_8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
