"""A bare application under gunicorn's own thread worker: the least a gateway of this kind costs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from tests.bench.exchange import COMPLETION
from tests.bench.launch import Command, Running, Site, free_port
from tests.bench.launch import running as started

NAME = "hello"
MOST_STREAMS = 0
PICTURES = False

OPTIONS = [
    "--worker-class", "gthread", "--workers", "1", "--threads", "64", "--keep-alive", "75",
    "--worker-tmp-dir", "/dev/shm", "--no-control-socket",
]


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """The engine's answer to everything, without an engine."""
    start_response("200 OK", [
        ("Content-Type", "application/json"), ("Content-Length", str(len(COMPLETION)))])
    return [COMPLETION]


def version(root: Path) -> str:
    """The server's version; the application is this module's."""
    return f"hello: gunicorn {version_of('gunicorn')}, gthread"


@contextmanager
def running(site: Site) -> Iterator[Running]:
    """gunicorn with this module's application."""
    port = free_port()
    words = [sys.executable, "-m", "gunicorn", *OPTIONS, "--bind", f"127.0.0.1:{port}",
             f"{__name__}:application"]
    with started(Command(words, port), site.directory / "log") as hello:
        yield hello
