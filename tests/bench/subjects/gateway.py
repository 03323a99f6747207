"""The gateway, started as its users start it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.bench.exchange import MODEL
from tests.bench.launch import Command, Running, Site, StartError, free_port
from tests.bench.launch import running as started

NAME = "gateway"
MOST_STREAMS = 10_000
PICTURES = True

_PYTHON = ".venv/bin/python"
_PARTS = """
from importlib.metadata import version
from platform import python_version
names = ("flask", "werkzeug", "gunicorn", "requests", "urllib3", "marshmallow")
print(f"Python {python_version()}", *(f"{name} {version(name)}" for name in names), sep=", ")
"""


def version(root: Path) -> str:
    """The commit of the gateway, and the versions of what it stands on."""
    if not (root / _PYTHON).exists():
        raise StartError(f"{root} has no {_PYTHON}: run scripts/serve there, which makes it")
    parts = subprocess.run(
        [root / _PYTHON, "-c", _PARTS], capture_output=True, text=True, check=True)
    return f"gateway: {_commit(root)}, {parts.stdout.strip()}"


@contextmanager
def running(site: Site) -> Iterator[Running]:
    """The gateway in front of the engine, with a thread for every stream."""
    port = free_port()
    config = site.directory / "gateway.yml"
    config.write_text(yaml.safe_dump({
        "server": {"port": port, "threads": max(256, site.streams + 24)},
        "loop": {
            "home": f"{site.directory}",
            "engines": [{"url": f"http://127.0.0.1:{site.engine.port}", "models": [MODEL]}],
        },
    }), encoding="utf-8")
    words = [_PYTHON, "-m", "gunicorn", "-c", "etc/gunicorn.conf.py"]
    command = Command(words, port, site.root, {"LOOP_CONFIG": f"{config}"})
    with started(command, site.directory / "log") as gateway:
        yield gateway


def _commit(root: Path) -> str:
    words = ["git", "--no-optional-locks", "-C", f"{root}", "describe", "--always", "--dirty"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "no commit"
    return f"commit {said.stdout.strip()}"
