"""Many paced streams at once: every event must arrive, in order; how late, and at what cost."""

from __future__ import annotations

import math
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.bench import tree
from tests.bench.exchange import stream_question
from tests.bench.quantiles import quantile
from tests.bench.wire import RECEIVE, EventStream, LoadError, Target, connect

_PATIENCE = 10.0  # seconds for what should have happened already
_SLACK = 0.5  # seconds for all streams to begin, beside those for each
_WAITING = 16  # streams that may wait for their first event, lest opening them be an onslaught
_PHASES = 100  # streams begin this many to a period, so that their events do not come in one burst
_POLL = 0.1  # seconds


@dataclass(frozen=True)
class Streams:
    """What streams cost while all of them ran; times in seconds."""

    cpu: float  # of the subject, per event
    p50: float  # from the engine's sending of an event to its arrival here
    p99: float
    memory: int  # bytes
    events: int
    faults: int  # of all streams, from their first event to their last


class _Load:
    def __init__(self, target: Target, path: str, every_ms: int) -> None:
        self._target = target
        self._path = path
        self.every_ms = every_ms
        self._epoll = select.epoll()
        self._open: dict[int, tuple[socket.socket, EventStream]] = {}
        self._waiting = 0
        self.streams: list[EventStream] = []
        self.lags: list[int] = []  # nanoseconds

    def open(self, end: float) -> None:
        """Begin one more stream, which lasts until `end` on the monotonic clock."""
        events = 2 + math.ceil((end - time.monotonic()) * 1000 / self.every_ms)
        sock = connect(self._target.port)
        sock.sendall(stream_question(self._path, self._target.headers, events, self.every_ms))
        stream = EventStream(events)
        self.streams.append(stream)
        self._waiting += 1
        self._open[sock.fileno()] = sock, stream
        self._epoll.register(sock, select.EPOLLIN)

    def read(self, until: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Take what comes, until that time on the monotonic clock or until it is enough."""
        while (left := until - time.monotonic()) > 0 and not enough():
            for descriptor, _ in self._epoll.poll(min(left, _POLL)):
                self._receive(descriptor)

    def running(self) -> int:
        """How many streams have begun and are not over."""
        return len(self._open) - self._waiting

    def few_waiting(self) -> bool:
        """Whether one more stream may be opened."""
        return self._waiting < _WAITING

    def over(self) -> bool:
        """Whether all streams that were opened are over."""
        return not self._open

    def _receive(self, descriptor: int) -> None:
        sock, stream = self._open[descriptor]
        waiting = not stream.begun
        try:
            data = sock.recv(RECEIVE)
        except ConnectionError:
            data = b""
        sent = stream.feed(data)
        now = time.monotonic_ns()
        self.lags += [now - each for each in sent]
        self._waiting -= waiting and (stream.begun or stream.over)
        if stream.over:
            del self._open[descriptor]
            sock.close()


def run(target: Target, path: str, count: int, every_ms: int, seconds: float) -> Streams:
    """`count` streams of a path at once, measured for at least so long while all of them run.

    Raises LoadError, OSError.
    """
    load = _Load(target, path, every_ms)
    limit = count * target.opening + _SLACK
    ready = time.monotonic() + limit
    end = ready + seconds
    _open_all(load, count, ready, end)
    if load.running() < count:
        raise LoadError(f"only {load.running()} of {count} streams began within {limit:.1f} s")
    load.lags.clear()
    cpu = tree.cpu_seconds(target.pid)
    load.read(end)
    cpu, lags = tree.cpu_seconds(target.pid) - cpu, load.lags[:]
    memory = tree.memory_bytes(target.pid)
    if load.running() < count:
        raise LoadError(f"only {load.running()} of {count} streams ran to their end")
    load.read(end + _PATIENCE, load.over)
    return Streams(
        cpu / len(lags), quantile(lags, 50) / 1e9, quantile(lags, 99) / 1e9, memory, len(lags),
        sum(stream.faults for stream in load.streams))


def _open_all(load: _Load, count: int, ready: float, end: float) -> None:
    """Begin `count` streams before `ready`, or as many as can."""
    gap = load.every_ms / 1000 / _PHASES
    for _ in range(count):
        if time.monotonic() > ready:
            break
        load.open(end)
        load.read(time.monotonic() + gap)
        load.read(ready, load.few_waiting)
    load.read(ready, lambda: load.running() == count)
