"""Fixtures for tests of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.registry_home import RegistryHome


@pytest.fixture
def registry_home(tmp_path: Path) -> RegistryHome:
    """An empty registry in a directory of its own."""
    return RegistryHome(tmp_path / "home")
