"""Fixtures for tests of every kind, and which of them share a worker process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.registry_home import RegistryHome

TESTS = Path(__file__).parent


def pytest_itemcollected(item: pytest.Item) -> None:
    """Where several workers run the tests, those of one file share its processes.

    The real engine is one for all: two of them at once would only wait for each other.
    """
    kind, *names = item.path.relative_to(TESTS).parts
    if kind == "engine":
        item.add_marker(pytest.mark.xdist_group("engine"))
    elif kind == "server":
        item.add_marker(pytest.mark.xdist_group("/".join(names)))


@pytest.fixture
def registry_home(tmp_path: Path) -> RegistryHome:
    """An empty registry in a directory of its own."""
    return RegistryHome(tmp_path / "home")
