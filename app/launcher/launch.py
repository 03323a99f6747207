"""What scripts/serve starts: which model, which commands, on which port."""

import errno
import glob
import json
import sys
from pathlib import Path

from app.launcher import demo
from app.catalog import gguf
from app.catalog.manifest import Entry
from app.catalog.names import normal
from app.catalog.registry import Registry
from app.engines.lifeline import ROOT
from app.engines.ports import refusal
from app.settings import ServerSettings


class CannotServe(Exception):
    """Nothing can be served; the message says why and what to do."""


def choose_model(home: Path, name: str | None) -> Entry:
    """The model to serve: `name`, or the demo model if it is there, or else the first readable one.

    Blocks for the download of the demo model where the registry holds none to choose from. Raises
    CannotServe and DemoError.
    """
    registry = Registry(home)
    found = registry.find(name) if name else _first_choice(registry.entries())
    if not found and (not name or normal(name) == normal(demo.SMOLLM2.name)):
        print(f"no model in {home} yet: a small demo model is put there", flush=True)
        demo.install(home)
        found = registry.find(demo.SMOLLM2.name)
    if not found:
        known = ", ".join(entry.name for entry in registry.entries()) or "none at all"
        raise CannotServe(f"there is no model {name} in {home}; the models there: {known}")
    return found


def _first_choice(entries: list[Entry]) -> Entry | None:
    readable = [entry for entry in entries if _readable(entry)]
    demos = [entry for entry in readable if normal(entry.name) == normal(demo.SMOLLM2.name)]
    return next(iter(demos + readable), None)


def _readable(entry: Entry) -> bool:
    try:
        return gguf.read(entry.first_file).complete
    except (gguf.GgufError, OSError):
        return False


def without_engine(home: Path, served: Entry) -> list[str]:
    """A line on the models that nothing serves, where there are any."""
    names = [entry.name for entry in Registry(home).entries() if entry.name != served.name]
    if not names:
        return []
    return [f"without an engine: {', '.join(names)} (--model NAME serves another one instead)"]


def engine_command(entry: Entry, port: int) -> list[str]:
    """The built-in engine with this model."""
    return [sys.executable, "-m", "app.engines.builtin", "--model", str(entry.first_file),
            "--alias", entry.name, "--port", str(port)]


def gateway_command() -> list[str]:
    """gunicorn with the gateway, which takes at most five seconds to stop."""
    return [sys.executable, "-m", "gunicorn", "-c", str(ROOT / "etc" / "gunicorn.conf.py"),
            "--graceful-timeout", "5", "wsgi:application"]


def engine_setting(entry: Entry, port: int) -> str:
    """The value of LOOP_LOOP_ENGINES that names the built-in engine alone."""
    engine = {"url": f"http://127.0.0.1:{port}", "models": [glob.escape(entry.name)]}
    return json.dumps([engine])


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
