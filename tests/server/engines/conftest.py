"""Fixtures around gateways that start their engines themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.server.engines.managed_gateway import ManagedGateway

Start = Callable[..., ManagedGateway]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """A function that starts a `ManagedGateway` in a directory of its own; stopped with the module.

    It takes what comes after the directory there.
    """
    with ExitStack() as stack:
        yield lambda *given, **named: stack.enter_context(
            ManagedGateway(tmp_path_factory.mktemp("managed"), *given, **named))
