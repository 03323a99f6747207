"""Notices clients that leave, and takes the engine's connection away from the thread that waits.

A thread that waits for an engine does not look at its client. One thread here looks at all clients
with epoll; a client that closes (or half-closes, which for HTTP means the same: RFC 9112, 9.6)
wakes it, and shutting the engine's socket down wakes the waiting thread.
"""

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from app.errors import GatewayError, Kind

_LEFT = select.EPOLLRDHUP


class Departure:
    """Whether one call has to end, as its client has left, and what wakes the thread that waits."""

    def __init__(self, client: socket.socket | None) -> None:
        self.client = client
        self.gone = False
        self._error = GatewayError(Kind.CLIENT_GONE, "the client left")
        self._lock = threading.Lock()
        self._wake: Callable[[], None] | None = None

    def attach(self, wake: Callable[[], None]) -> None:
        """From now on ``wake``, which must not block, is called when the client leaves or has left.

        Not after ``detach``: what it wakes may be another call's by then.
        """
        with self._lock:
            self._wake = wake
            if self.gone:
                wake()

    def attach_socket(self, engine: socket.socket) -> None:
        """From now on the engine's socket is shut down when the client leaves, or has left."""
        self.attach(lambda: _shut_down(engine))

    def detach(self) -> None:
        """What was attached is no longer this call's."""
        with self._lock:
            self._wake = None

    def happen(self, error: GatewayError | None = None) -> None:
        """The client has left, or the call has to end by this error."""
        with self._lock:
            if error is not None and not self.gone:
                self._error = error
            self.gone = True
            if self._wake is not None:
                self._wake()

    def check(self) -> None:
        """Raises ``error`` where the call has to end."""
        if self.gone:
            raise self.error()

    def error(self) -> GatewayError:
        """Why the call has to end: a new error each time, as a raise changes it."""
        return GatewayError(self._error.kind, self._error.message, wait=self._error.wait)


class Hangups:
    """Watches clients for as long as their calls run. Safe to use from many threads."""

    def __init__(self) -> None:
        """The watching thread starts with the first client, so a fork before it is harmless."""
        self._lock = threading.Lock()
        self._watched: dict[int, list[Departure]] = {}
        self._epoll: select.epoll | None = None
        self._ended: GatewayError | None = None

    def end_all(self, error: GatewayError) -> None:
        """Let every call that runs end by the error, and every one that comes."""
        with self._lock:
            self._ended = error
            calls = [departure for found in self._watched.values() for departure in found]
        for departure in calls:
            departure.happen(error)

    @contextmanager
    def watch(self, client: socket.socket | None) -> Iterator[Departure]:
        """A Departure that happens if the client leaves before the context ends."""
        departure = Departure(client)
        if client is None or client.fileno() < 0:
            yield departure
            return
        descriptor = client.fileno()
        epoll = self._started()
        with self._lock:
            calls = self._watched.setdefault(descriptor, [])
            calls.append(departure)
            ended = self._ended
        if ended:
            departure.happen(ended)
        if len(calls) == 1:
            epoll.register(descriptor, _LEFT | select.EPOLLONESHOT)
        elif _has_left(client):  # a call within a call; the one event may have come already
            departure.happen()
        try:
            yield departure
        finally:
            self._forget(descriptor, departure, epoll)

    def _forget(self, descriptor: int, departure: Departure, epoll: select.epoll) -> None:
        with self._lock:
            calls = self._watched[descriptor]
            calls.remove(departure)
            if calls:
                return
            del self._watched[descriptor]
        with suppress(OSError):  # closed already, which takes it out as well
            epoll.unregister(descriptor)

    def _started(self) -> select.epoll:
        with self._lock:
            if self._epoll is None:
                self._epoll = select.epoll()
                threading.Thread(target=self._run, name="hangups", daemon=True).start()
            return self._epoll

    def _run(self) -> None:
        assert self._epoll is not None
        while True:
            for descriptor, _ in self._epoll.poll():
                with self._lock:
                    calls = list(self._watched.get(descriptor, ()))
                for departure in calls:
                    # The descriptor may be another client's by now: ask the socket itself.
                    if departure.client and _has_left(departure.client):
                        departure.happen()


def _has_left(client: socket.socket) -> bool:
    poll = select.poll()
    try:
        poll.register(client, select.POLLRDHUP)
    except ValueError:  # closed meanwhile
        return False
    return bool(poll.poll(0))


def _shut_down(engine: socket.socket) -> None:
    try:
        engine.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # closed already
