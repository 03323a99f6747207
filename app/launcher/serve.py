"""What scripts/serve runs: the gateway, and behind it the built-in engine with one model.

    python -m app.launcher.serve [--config FILE] [--model NAME] [--log-format json|text]

Ctrl-C, SIGTERM and SIGHUP stop all of it with exit code 0; a second one stops it at once. Whatever
keeps it from serving is told in one sentence, with exit code 1.
"""

import argparse
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from app.launcher import launch, probe
from app.catalog.manifest import Entry
from app.launcher.child import ENDING, Child
from app.launcher.children import ChildEnded, Children
from app.config import ConfigError, load
from app.launcher.demo import DemoError
from app.engines.lifeline import Signals
from app.engines.ports import free_port
from app.launcher.launch import CannotServe
from app.settings import ServerSettings, Settings

_LOG = "logs/builtin-engine.log"  # below the registry's home
_ENGINE_LIMIT = 600.0  # s; a large model from a slow disk
_GATEWAY_LIMIT = 60.0  # s


def main(argv: Sequence[str] | None = None) -> int:
    """Start, say where, and serve; blocks until told to stop or until a part of it ends."""
    arguments = _parser().parse_args(argv)
    for signum in _endings():
        signal.signal(signum, signal.default_int_handler)  # until there is something to stop
    try:
        _serve(arguments)
    except (ConfigError, DemoError, CannotServe, ChildEnded) as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/serve", description=(
        "Start the gateway and, unless a configuration names other engines, the built-in engine "
        "with one model; where there is no model yet, a small demo model is downloaded first."))
    parser.add_argument("--config", metavar="FILE", help="serve this file's engines instead")
    parser.add_argument("--model", metavar="NAME", help="the model the built-in engine serves")
    parser.add_argument("--log-format", choices=("json", "text"),
                        help="the form of the log lines (server.log-format)")
    parser.add_argument("--directory", help=argparse.SUPPRESS)  # what relative paths start from
    return parser


def _endings() -> list[int]:
    """The signals that stop us; under nohup a hang-up is not one of them."""
    return [s for s in ENDING if s != signal.SIGHUP or signal.getsignal(s) != signal.SIG_IGN]


def _serve(arguments: argparse.Namespace) -> None:
    """Serve; raises KeyboardInterrupt when told to stop, ChildEnded or CannotServe otherwise."""
    environ = _environment(arguments)
    settings = load(environ)
    command = ["scripts/serve", *(["--config", arguments.config] if arguments.config else [])]
    launch.require_free(settings.server, shlex.join(command))
    environ["LOOP_LOOP_HOME"] = str(settings.loop.home)  # absolute; the gateway starts elsewhere
    if settings.keys_file:
        environ["LOOP_KEYS_FILE"] = str(settings.keys_file)
    entry = None
    if "LOOP_CONFIG" not in environ:
        entry = launch.choose_model(settings.loop.home, arguments.model)
    signals = Signals(*_endings(), signal.SIGCHLD)
    with Children(signals) as children:
        if entry:
            port = _start_engine(children, entry, settings.loop.home)
            environ["LOOP_LOOP_ENGINES"] = launch.engine_setting(entry, port)
        _start_gateway(children, settings.server, environ)
        print(_welcome(settings, entry), flush=True)
        children.watch()


def _environment(arguments: argparse.Namespace) -> dict[str, str]:
    """The environment for everything we start, with absolute paths in LOOP_CONFIG."""
    environ = dict(os.environ)
    try:
        os.chdir(arguments.directory or ".")
    except OSError as error:
        raise CannotServe(f"{arguments.directory} cannot be entered: {error.strerror}") from error
    if arguments.log_format:
        environ["LOOP_SERVER_LOG_FORMAT"] = arguments.log_format
    files = arguments.config or environ.pop("LOOP_CONFIG", "")
    if files and arguments.model:
        raise CannotServe("a model can be chosen for the built-in engine only: "
                          "leave out either --model or the configuration")
    if files:
        paths = [Path(name).expanduser().absolute() for name in files.split(":") if name]
        environ["LOOP_CONFIG"] = ":".join(map(str, paths))
    return environ


def _start_engine(children: Children, entry: Entry, home: Path) -> int:
    """Start the built-in engine; its port, once it answers."""
    log = _log_file(home)
    port = free_port()
    print(f"loading {entry.name}", flush=True)
    engine = Child("built-in engine", launch.engine_command(entry, port), os.environ, log)
    children.add(engine, lambda: probe.answer("127.0.0.1", port, "/health") is not None,
                 _ENGINE_LIMIT)
    return port


def _log_file(home: Path) -> Path:
    log = home / _LOG
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.open("wb").close()
    except OSError as error:
        raise CannotServe(f"the engine's log {log} cannot be written ({error.strerror}): set "
                          "LOOP_LOOP_HOME to a directory that can") from error
    return log


def _start_gateway(children: Children, server: ServerSettings, environ: dict[str, str]) -> None:
    host = probe.reachable(server.address)
    gateway = Child("gateway", launch.gateway_command(), environ)
    children.add(gateway, lambda: probe.answer(host, server.port, "/health") is not None,
                 _GATEWAY_LIMIT)


def _welcome(settings: Settings, entry: Entry | None) -> str:
    """Where it serves what, and a line to try it with."""
    host, port = probe.reachable(settings.server.address), settings.server.port
    model = entry.name if entry else probe.first_model(host, port)
    lines = [f"\nthe gateway is at {probe.url(host, port)}; Ctrl-C stops it"]
    if entry:
        lines += [f"model: {entry.name}", f"engine log: {settings.loop.home}/{_LOG}"]
        lines += launch.without_engine(settings.loop.home, entry)
    line = probe.curl(probe.url(host, port), model, keyed=bool(settings.keys))
    return "\n".join([*lines, "try it:\n", line, ""])


if __name__ == "__main__":
    sys.exit(main())
