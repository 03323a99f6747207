"""The least that the gateway's parts cost as a proxy, under gunicorn's own thread worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.launch import Command, Running, Site, free_port
from tests.bench.launch import running as started
from tests.bench.subjects import hello

NAME = "floor"
MOST_STREAMS = 0
PICTURES = False

_APPLICATION = "tests.bench.forwarder:application"


def version(root: Path) -> str:
    """What it is; its parts are those of the gateway that measures."""
    return "floor: Flask, marshmallow and a requests Session, gthread"


@contextmanager
def running(site: Site) -> Iterator[Running]:
    """gunicorn with the application that only forwards."""
    port = free_port()
    words = [sys.executable, "-m", "gunicorn", *hello.OPTIONS, "--bind", f"127.0.0.1:{port}",
             _APPLICATION]
    engine = {"ENGINE": f"http://127.0.0.1:{site.engine.port}"}
    with started(Command(words, port, environment=engine), site.directory / "log") as floor:
        yield floor
