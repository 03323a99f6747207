"""The engine with nothing in front of it: what all others are compared to."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.launch import Running, Site

NAME = "direct"
MOST_STREAMS = 10_000
PICTURES = True


def version(root: Path) -> str:
    """What runs the engine and the load."""
    return f"engine and load: Python {platform.python_version()}"


@contextmanager
def running(site: Site) -> Iterator[Running]:
    """The engine itself: its processor time and memory are the engine's."""
    yield site.engine
