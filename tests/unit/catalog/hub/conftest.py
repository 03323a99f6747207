"""Fixtures for tests of what comes from the hub: a hub on loopback, and a pull from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.utils import close_session

from app.catalog.hub.client import Hub
from app.catalog.hub.patience import Patience
from app.catalog.hub.pull import Wanted, pull
from app.catalog.hub.reference import parse
from app.catalog.progress import Progress
from tests.fakes.hub import FakeHub, fake_hub

Pull = Callable[..., list[Progress]]
SILENCE = 0.5  # s


@pytest.fixture(scope="package", autouse=True)
def own_environment() -> Iterator[None]:
    """No proxy and no token of this machine; one session of the library, as making it is slow."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "HF_TOKEN"):
            patch.delenv(name, raising=False)
            patch.delenv(name.lower(), raising=False)
        close_session()
        yield
        close_session()


@pytest.fixture(scope="package")
def running_hub() -> Iterator[FakeHub]:
    """One hub for all tests."""
    with fake_hub() as running:
        yield running


@pytest.fixture
def hub(running_hub: FakeHub) -> FakeHub:
    """A hub without repositories, that was asked nothing yet."""
    for what in (running_hub.repos, running_hub.faults, running_hub.requests):
        what.clear()
    return running_hub


@pytest.fixture
def bring(hub: FakeHub, tmp_path: Path) -> Pull:
    """A function that pulls what a name means into tmp_path; gives all events."""
    def brought(model: str, patience: Patience = Patience((0, 0)), **wanted: Any) -> list[Progress]:
        asked = Wanted(parse(model), **wanted)
        return list(pull(tmp_path, asked, Hub(hub.url, SILENCE), patience))
    return brought
