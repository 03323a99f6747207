"""Plain requests in closed loops: each connection sends its next request after its last answer."""

from __future__ import annotations

import select
import socket
import time
from dataclasses import dataclass

from tests.bench import tree
from tests.bench.exchange import TEXT, question
from tests.bench.quantiles import quantile
from tests.bench.wire import RECEIVE, LoadError, Target, connect, whole

_PATIENCE = 10.0  # seconds without any answer
_MOST = 100_000  # requests


@dataclass(frozen=True)
class Plain:
    """What requests cost, in seconds."""

    cpu: float  # of the subject, per request
    rate: float  # requests per second
    p50: float
    p99: float


class _Load:
    def __init__(self, port: int, connections: int, request: bytes) -> None:
        self._request = request
        self._epoll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._received: dict[int, bytearray] = {}
        self._sent: dict[int, float] = {}
        self.times: list[float] = []
        for _ in range(connections):
            sock = connect(port)
            self._sockets[sock.fileno()] = sock
            self._received[sock.fileno()] = bytearray()
            self._epoll.register(sock, select.EPOLLIN)

    def run(self, until: float) -> None:
        """Keep every connection busy until that time on the monotonic clock, then let all end."""
        for descriptor in self._sockets:
            self._send(descriptor)
        while self._sent:
            ready = self._epoll.poll(_PATIENCE)
            if not ready:
                raise LoadError(f"no answer within {_PATIENCE:.0f} s")
            for descriptor, _ in ready:
                self._receive(descriptor)
                more = time.monotonic() < until and len(self.times) < _MOST
                if more and descriptor not in self._sent:
                    self._send(descriptor)

    def _send(self, descriptor: int) -> None:
        self._sent[descriptor] = time.monotonic()
        self._sockets[descriptor].sendall(self._request)

    def _receive(self, descriptor: int) -> None:
        received = self._received[descriptor]
        data = self._sockets[descriptor].recv(RECEIVE)
        if not data:
            raise LoadError("a connection was closed instead of an answer")
        received += data
        body = whole(received)
        if body is None:
            return
        if TEXT not in body:
            raise LoadError(f"not the engine's answer: {body[:400]!r}")
        self.times.append(time.monotonic() - self._sent.pop(descriptor))
        received.clear()


def run(target: Target, connections: int, seconds: float) -> Plain:
    """Load on a target for so long, at so many connections.

    Raises LoadError, OSError.
    """
    load = _Load(target.port, connections, question(target.headers))
    cpu, begin = tree.cpu_seconds(target.pid), time.monotonic()
    load.run(begin + seconds)
    took, cpu = time.monotonic() - begin, tree.cpu_seconds(target.pid) - cpu
    count = len(load.times)
    return Plain(cpu / count, count / took, quantile(load.times, 50), quantile(load.times, 99))
