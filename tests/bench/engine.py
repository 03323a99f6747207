"""A fake engine that costs next to nothing: one thread, epoll, answers made beforehand.

python -m tests.bench.engine  prints its port, serves on 127.0.0.1, and ends with its standard
input. A POST gets a completion at once, or where its text asks for them (see exchange.WANTED) so
many numbered events, the first at once, the others as far apart as it says. The pace is kept
to about a millisecond, which is what epoll's timeout can do; each event carries the time at which
it really was sent.
"""

from __future__ import annotations

import gc
import heapq
import itertools
import select
import socket
import sys
import time

from tests.bench.exchange import COMPLETION, STREAM_HEAD, WANTED, answer
from tests.bench.served import Connection, Stream

_COMPLETION = answer(COMPLETION)
_HEALTHY = answer(b'{"status":"ok"}')
_TAIL = 4096  # bytes of a body that may hold what is wanted


class Engine:
    """All connections of one listening socket, served by the thread that calls `run`."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._connections: dict[int, Connection] = {}
        self._due: list[tuple[float, int, Stream]] = []
        self._order = itertools.count()
        self._epoll = select.epoll()
        self._epoll.register(listener, select.EPOLLIN)

    def run(self, until: int) -> None:
        """Serve until the file descriptor `until` is at its end."""
        self._epoll.register(until, select.EPOLLIN)
        while True:
            for descriptor, mask in self._epoll.poll(self._pause()):
                if descriptor == until:
                    return
                self._serve(descriptor, mask)
            self._send_due(time.monotonic())

    def _pause(self) -> float:
        return max(0.0, self._due[0][0] - time.monotonic()) if self._due else -1

    def _serve(self, descriptor: int, mask: int) -> None:
        if descriptor == self._listener.fileno():
            self._accept()
            return
        connection = self._connections[descriptor]
        try:
            if mask & select.EPOLLOUT:
                connection.send(b"")
            if mask & ~select.EPOLLOUT and not connection.receive():
                self._close(connection)
                return
            for method, body in connection.requests():
                self._answer(connection, method, body)
            if connection.waiting or mask & select.EPOLLOUT:
                self._watch(connection)
        except ConnectionError:
            self._close(connection)

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[sock.fileno()] = Connection(sock)
        self._epoll.register(sock, select.EPOLLIN)

    def _close(self, connection: Connection) -> None:
        if connection.sock.fileno() >= 0:
            del self._connections[connection.sock.fileno()]
            connection.sock.close()

    def _watch(self, connection: Connection) -> None:
        mask = select.EPOLLIN | (select.EPOLLOUT if connection.waiting else 0)
        self._epoll.modify(connection.sock, mask)

    def _answer(self, connection: Connection, method: bytes, body: bytes) -> None:
        wanted = WANTED.search(body, max(0, len(body) - _TAIL))
        if method != b"POST":
            connection.send(_HEALTHY)
        elif not wanted:
            connection.send(_COMPLETION)
        else:
            connection.send(STREAM_HEAD)
            stream = Stream(connection, int(wanted[1]), int(wanted[2]) / 1000)
            self._schedule(time.monotonic(), stream)

    def _schedule(self, due: float, stream: Stream) -> None:
        heapq.heappush(self._due, (due, next(self._order), stream))

    def _send_due(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            due, _, stream = heapq.heappop(self._due)
            connection = stream.connection
            if connection.sock.fileno() < 0:
                continue
            try:
                more = stream.send_next()
            except ConnectionError:
                self._close(connection)
                continue
            if more:
                self._schedule(due + stream.every, stream)
            if connection.waiting:
                self._watch(connection)


def main() -> None:
    """Serve until standard input ends."""
    gc.disable()  # nothing here is cyclic, and a pause would look like a slow engine
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        print(listener.getsockname()[1], flush=True)
        Engine(listener).run(until=sys.stdin.fileno())


if __name__ == "__main__":
    main()
