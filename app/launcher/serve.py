"""What scripts/serve runs: the gateway, with a built-in engine for each model or with a file's own.

    python -m app.launcher.serve [--config FILE] [--log-format json|text]

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

from app.arguments import Parser
from app.config import ConfigError, load
from app.engines.lifeline import Signals
from app.engines.logfile import FOLDER
from app.launcher import launch, probe
from app.launcher.child import ENDING, Child, ChildEnded
from app.launcher.demo import DemoError
from app.launcher.launch import CannotServe
from app.settings import Settings

_START_LIMIT = 60.0  # s
_LISTED = 3  # models that are named


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
    parser = Parser(prog="scripts/serve", description=(
        "Start the gateway. Unless a configuration names engines, every model of the registry gets "
        "the built-in one, started at its first request; where there is no model yet, a small demo "
        "model is downloaded first."))
    parser.add_argument("--config", metavar="FILE", help="serve this file's engines instead")
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
    models = []
    if "LOOP_CONFIG" not in environ and not settings.loop.engines:
        models = launch.models(settings.loop.home)
        environ = launch.with_builtin_engines(environ, settings.loop)
        settings = load(environ)
    _run_gateway(settings, environ, models)


def _run_gateway(settings: Settings, environ: dict[str, str], models: list[str]) -> None:
    host, port = probe.reachable(settings.server.address), settings.server.port
    signals = Signals(*_endings(), signal.SIGCHLD)
    with Child("gateway", launch.gateway_command(), launch.with_quick_end(environ), signals,
               launch.SECONDS_TO_STOP) as gateway:
        gateway.wait_until(lambda: probe.answer(host, port, "/health") is not None, _START_LIMIT)
        print(_welcome(settings, models or probe.models(host, port)), flush=True)
        gateway.watch()


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
    if files:
        paths = [Path(name).expanduser().absolute() for name in files.split(":") if name]
        environ["LOOP_CONFIG"] = ":".join(map(str, paths))
    return environ


def _welcome(settings: Settings, models: list[str]) -> str:
    """Where it serves what, and a line to try the first of the models with."""
    url = probe.url(probe.reachable(settings.server.address), settings.server.port)
    lines = [f"\nthe gateway is at {url}; Ctrl-C stops it"]
    if models:
        lines.append(f"models: {_listed(models)}")
    if any(engine.command for engine in settings.loop.engines):
        lines += ["an engine is started by the first request for its model",
                  f"engine logs: {settings.loop.home / FOLDER}/"]
    line = probe.curl(url, next(iter(models), None), keyed=bool(settings.keys))
    return "\n".join([*lines, "try it:\n", line, ""])


def _listed(models: list[str]) -> str:
    more = len(models) - _LISTED
    named = ", ".join(models[:_LISTED])
    return f"{named} and {more} more" if more > 0 else named


if __name__ == "__main__":
    sys.exit(main())
