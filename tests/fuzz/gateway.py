"""The gateway that is tried: everything is open, and nothing waits for long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.engine_steps import reply
from tests.fakes.raw_engine import Exchange, RawEngine, Script
from tests.fakes.registry_home import RegistryHome
from tests.fakes.stream_steps import DONE, STOP, ev, stream
from tests.fuzz.judging import BODY_TIMEOUT
from tests.server.gateway_process import GatewayProcess

_CHAT: Script = reply()
_STREAM: Script = stream("chunked", [ev("Hel"), ev("lo"), STOP, DONE])
_PAGES = {
    "/v1/chat/completions": _CHAT,
    "/v1/embeddings": reply(200, b'{"data":[{"index":0,"embedding":[0.6,0.8]}]}'),
}


def _answer(exchange: Exchange) -> None:
    """What an engine says at its two main pages, else something; it never looks at what it gets."""
    request = exchange.request
    found = _PAGES.get(request.path.partition("?")[0], reply(200, b'{"ok":true}'))
    if found is _CHAT and re.search(rb'"stream": ?true', request.body):
        found = _STREAM
    for step in [found] if callable(found) else found:
        step(exchange)


@contextmanager
def fuzzed(directory: Path) -> Iterator[GatewayProcess]:
    """A gateway in front of an engine that answers everything; a pull leads nowhere."""
    home = RegistryHome(directory / "home")
    for model in ("m", "org/name:tag"):
        home.add(model)
    with RawEngine(_answer) as engine:
        settings = {
            "server": {"threads": 16, "max-body": "256KiB", "body-timeout": BODY_TIMEOUT},
            "loop": {"home": str(home.path), "default-model": "m", "read-timeout": "5s",
                     "engines": [{"url": engine.url, "models": ["*"]}]}}
        with GatewayProcess(directory, settings, {"HF_ENDPOINT": "http://127.0.0.1:1"}) as gateway:
            yield gateway
