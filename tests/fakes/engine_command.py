"""A program that plays a managed engine: it starts, answers and fails as it is told.

    python -S -E engine_command.py --port N --model NAME --journal FILE …

Its options say how it starts and ends, the words of a prompt how it answers (`engine_server`).
What happens goes to the journal, one JSON object per line (`engine_journal` reads them). It needs
only what a bare Python has, and few modules of that, so that it starts quickly.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import threading
import time
from typing import Any, NoReturn

from engine_server import EngineServer  # run by its path, its neighbours are top-level modules


class Note:
    """Writes a journal; lines of several processes do not mix."""

    def __init__(self, path: str, model: str) -> None:
        self._path = path
        self._model = model
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __call__(self, event: str, **more: Any) -> None:
        """Note an event now; the clock is the same for all processes."""
        line = {"at": time.monotonic(), "event": event, "model": self._model, "pid": os.getpid(),
                **more}
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def others(self) -> list[str]:
        """The models of other engines of this journal whose processes are there now."""
        with open(self._path, encoding="utf-8") as file:
            noted = [json.loads(line) for line in file]
        return [line["model"] for line in noted if line["event"] == "started"
                and line["pid"] != os.getpid() and self._lives(line["pid"])]

    def _lives(self, pid: int) -> bool:
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                return self._path in file.read()  # of a zombie it is empty
        except OSError:
            return False


def main() -> None:
    """Run the command line; blocks until it is told to end."""
    options, _ = _parser().parse_known_args()
    note = Note(options.journal, options.model)
    note("started", port=options.port, arguments=sys.argv[1:],
         variables=[name for name in os.environ if name.startswith("LOOP_")])
    note("beside", others=note.others())
    signal.signal(signal.SIGTERM, lambda *_: _told_to_end(options, note))
    _start_children(options)
    sys.stdout.write("chatter\n" * (options.chatter // 8))
    sys.stdout.flush()
    server = EngineServer(options, note)
    if options.loading:
        threading.Thread(target=_load, args=(options, server), daemon=True).start()
    else:
        _load(options, server)
    server.serve(_listener(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="engine_command", allow_abbrev=False)
    add = parser.add_argument
    add("--port", type=int, required=True)
    add("--model", required=True)
    add("--journal", required=True)
    add("--load", type=float, default=0.0, help="seconds that it takes to load")
    add("--loading", action="store_true", help="listen at once, and answer 503 while it loads")
    add("--answer", type=float, default=0.0, help="seconds that an answer takes")
    add("--slots", type=int, help="what GET /props tells; without it there is no such page")
    add("--no-health", action="store_true", help="have no /health")
    add("--sick", help="GET /health is 500 while this file exists")
    add("--fail-if-exists", help="--exit, --hang and --elsewhere count only while it exists")
    add("--exit", type=int, help="end with this code instead of listening")
    add("--say", default="", help="the last line before that")
    add("--hang", action="store_true", help="never listen")
    add("--elsewhere", action="store_true", help="listen on another port")
    add("--after", help="listen once the file of this name, a dot and the port exists")
    add("--stay", action="store_true", help="run on when the port is taken")
    add("--chatter", type=int, default=0, help="bytes to print at the start")
    add("--child", action="store_true", help="have a child in the process group")
    add("--stray", action="store_true", help="have a child in a session of its own")
    add("--ignore-term", action="store_true", help="do not end at SIGTERM")
    add("--linger", type=float, default=0.0, help="seconds from SIGTERM to the end")
    return parser


def _told_to_end(options: argparse.Namespace, note: Note) -> None:
    note("ignored" if options.ignore_term else "terminated")
    if not options.ignore_term:
        time.sleep(options.linger)
        os._exit(0)


def _start_children(options: argparse.Namespace) -> None:
    for wanted, own_session in (options.child, False), (options.stray, True):
        if wanted and os.fork() == 0:
            if own_session:
                os.setsid()
            os.execvp("sleep", ["sleep", "1000"])


def _load(options: argparse.Namespace, server: EngineServer) -> None:
    """Be busy for as long as loading takes; what keeps it from serving happens at its end."""
    time.sleep(options.load)
    if _fails(options):
        if options.exit is not None:
            print(options.say, file=sys.stderr, flush=True)
            os._exit(options.exit)
        if options.hang:
            _hang()
    server.is_loaded.set()


def _fails(options: argparse.Namespace) -> bool:
    return options.fail_if_exists is None or os.path.exists(options.fail_if_exists)


def _listener(options: argparse.Namespace) -> socket.socket:
    while options.after and not os.path.exists(f"{options.after}.{options.port}"):
        time.sleep(0.01)
    port = 0 if options.elsewhere and _fails(options) else options.port
    try:
        return socket.create_server(("127.0.0.1", port), backlog=1024)
    except OSError as error:
        print(f"engine: port {port}: {os.strerror(error.errno or 0)}", file=sys.stderr, flush=True)
        if options.stay:
            _hang()
        sys.exit(1)


def _hang() -> NoReturn:
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
