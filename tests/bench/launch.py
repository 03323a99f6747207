"""Starts what is measured, each in a process of its own, and ends it again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.exchange import head

ROOT = Path(__file__).parents[2]
_START_LIMIT = 120.0  # seconds
_STOP_LIMIT = 15.0


class StartError(Exception):
    """A process did not come up; the message is a sentence and the process's own words."""


@dataclass(frozen=True)
class Running:
    """A server on a port of 127.0.0.1, with the root of its tree of processes."""

    port: int
    pid: int
    start: float | None = None  # seconds from its start to its first answer to its health check
    headers: dict[str, str] = field(default_factory=dict)  # that its requests have to have
    opening: float = 0.008  # seconds that one stream may take to begin, beside some for all


@dataclass(frozen=True)
class Site:
    """Where a subject is set up, and for what."""

    directory: Path  # for its files; empty, and removed after it
    engine: Running
    root: Path  # of the gateway to be measured
    streams: int  # most of them at a time


@dataclass(frozen=True)
class Command:
    """How to start a server."""

    words: Sequence[str]
    port: int
    directory: Path = ROOT
    environment: dict[str, str] = field(default_factory=dict)
    health: str = "/health"


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def engine() -> Iterator[Running]:
    """The fake engine, running inside the context."""
    words = [sys.executable, "-m", "tests.bench.engine"]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          start_new_session=True) as process:
        try:
            assert process.stdout
            yield Running(int(process.stdout.readline()), process.pid)
        finally:
            _stop(process)


@contextmanager
def running(command: Command, log: Path) -> Iterator[Running]:
    """The server, running inside the context; what it says goes to `log`. Raises StartError."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ}
    with log.open("wb") as out:
        begin = time.monotonic()
        process = subprocess.Popen(
            command.words, cwd=command.directory, env={**kept, **command.environment},
            stdout=out, stderr=out, start_new_session=True)
        try:
            _wait_until_healthy(process, command, log)
            yield Running(command.port, process.pid, time.monotonic() - begin)
        finally:
            _stop(process)


def _wait_until_healthy(process: subprocess.Popen[bytes], command: Command, log: Path) -> None:
    deadline = time.monotonic() + _START_LIMIT
    while time.monotonic() < deadline and process.poll() is None:
        if _healthy(command.port, command.health):
            return
        time.sleep(0.005)
    said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise StartError(f"{process.args!r} did not come up: {said}")


def _healthy(port: int, path: str) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            sock.sendall(head(f"GET {path}", {"Host": "127.0.0.1", "Connection": "close"}))
            return sock.recv(4096).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process; what it started is in its session and ends with it, or is killed."""
    process.terminate()
    try:
        process.wait(_STOP_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
