"""Portkey's gateway under node, told by headers where the engine is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.bench import environments
from tests.bench.launch import Command, Running, Site, free_port
from tests.bench.launch import running as started

NAME = "portkey"
# 1.15.2 answers 500 to a stream on node 20: it adds to headers that fetch lets nobody change.
MOST_STREAMS = 0
PICTURES = True

_PACKAGE = "@portkey-ai/gateway"
_MODULE = Path("node_modules") / _PACKAGE


def version(root: Path) -> str:
    """The version of the gateway, which is installed where it is not yet. Raises StartError."""
    package = environments.of_node(NAME, _PACKAGE) / _MODULE / "package.json"
    return f"portkey {json.loads(package.read_text(encoding='utf-8'))['version']}, one process"


@contextmanager
def running(site: Site) -> Iterator[Running]:
    """The gateway in front of the engine."""
    port = free_port()
    script = environments.of_node(NAME, _PACKAGE) / _MODULE / "build" / "start-server.js"
    command = Command(["node", f"{script}", f"--port={port}", "--headless"], port,
                      site.directory, {"NODE_ENV": "production"}, "/")
    headers = {"x-portkey-provider": "openai", "Authorization": "Bearer none",
               "x-portkey-custom-host": f"http://127.0.0.1:{site.engine.port}/v1"}
    with started(command, site.directory / "log") as gateway:
        yield replace(gateway, headers=headers)
