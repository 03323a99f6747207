"""What scripts/serve starts: the command, the engines, the port, and a model to try it with."""

import errno
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from app.catalog import gguf
from app.catalog.manifest import Entry
from app.catalog.names import normal
from app.catalog.registry import Registry
from app.engines.lifeline import ROOT
from app.engines.ports import refusal
from app.launcher import demo, memory
from app.settings import BUILTIN, LoopSettings, ServerSettings

SECONDS_TO_STOP = 10.0  # for the gateway: what it gives its calls, and what its engines then need
_TIME_FOR_CALLS = "5s"
_SHARE = 0.8  # of the machine's memory


class CannotServe(Exception):
    """Nothing can be served; the message says why and what to do."""


def models(home: Path) -> list[str]:
    """The names of all models, the one to try first: the demo model or the first readable one.

    Blocks for the download of the demo model where the registry holds none. Raises DemoError.
    """
    entries = Registry(home).entries()
    first = _first_choice(entries)
    if first is None:
        print(f"no model in {home} yet: a small demo model is put there", flush=True)
        demo.install(home)
        first = demo.SMOLLM2.name
    return [first, *(each.name for each in entries if normal(each.name) != normal(first))]


def _first_choice(entries: list[Entry]) -> str | None:
    demos = [entry for entry in entries if normal(entry.name) == normal(demo.SMOLLM2.name)]
    return next((entry.name for entry in demos + entries if _readable(entry)), None)


def _readable(entry: Entry) -> bool:
    try:
        return gguf.read(entry.first_file).complete
    except (gguf.GgufError, OSError):
        return False


def with_builtin_engines(environ: Mapping[str, str], loop: LoopSettings) -> dict[str, str]:
    """`environ`, in which every model of the registry has a built-in engine, in bounded memory."""
    engines = json.dumps([{"command": BUILTIN[0], "models": ["*"]}])
    budget = loop.memory_budget or int(memory.available() * _SHARE)
    return {"LOOP_LOOP_MEMORY_BUDGET": str(budget), **environ, "LOOP_LOOP_ENGINES": engines}


def gateway_command() -> list[str]:
    """gunicorn with the gateway."""
    return [sys.executable, "-m", "gunicorn", "-c", str(ROOT / "etc" / "gunicorn.conf.py"),
            "wsgi:application"]


def with_quick_end(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ`, in which calls that run get some seconds when the gateway stops."""
    return {**environ, "LOOP_SERVER_STOP_TIMEOUT": _TIME_FOR_CALLS}


def require_free(server: ServerSettings, start: str) -> None:
    """Raises CannotServe when the gateway cannot listen; `start` is the command to start it."""
    error = refusal(server.address.strip("[]"), server.port)
    if not error:
        return
    taken = error.errno == errno.EADDRINUSE
    what = "is in use" if taken else f"cannot be listened on ({error.strerror})"
    port = server.port + 1 if 1024 <= server.port < 65535 else 11435
    raise CannotServe(f"port {server.port} on {server.address} {what}: "
                      f"choose another, such as LOOP_SERVER_PORT={port} {start}")
