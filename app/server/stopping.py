"""What signals mean to the worker: mostly its end, which calls that run may delay for a while.

    SIGTERM           no more calls (503, and connections close); running ones have
                      ``server.stop-timeout`` to end in
    SIGQUIT, SIGINT   as SIGTERM whose time is up
    SIGHUP            the configuration is read again

When the time is up calls end by an error, also those whose body is still coming, and soon after
their connections are cut. Connections are accepted, to be told so, as long as calls run; one that
nobody accepts looks like a gateway that hangs.
"""

import signal
import socket
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from app.settings import ServerSettings

_LINGER = 2.0  # s; for a client that is sending its next request already
_CUT = 0.5  # s; for calls that have to end by an error
_BACKLOG = 4096  # connections that may wait to be accepted


class StoppingWorker(ThreadWorker):
    """A thread worker that ends when its calls have ended."""

    settings: ServerSettings
    application: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.busy: set[Any] = set()  # connections whose request is being answered
        self.lingering: deque[Any] = deque()  # answered and closing, the next to be closed first
        self.hasty = False
        self._running: set[Any] | None = None  # of ``busy`` those from before the signal
        self._end_by: float | None = None  # when these have to end
        self._cut_by: float | None = None  # when connections are cut

    @property
    def stopping(self) -> bool:
        """Whether no more calls are taken."""
        return self._end_by is not None

    def init_signals(self) -> None:
        """As gunicorn's, and with a meaning for SIGHUP."""
        super().init_signals()
        signal.signal(signal.SIGHUP, self._handle_reload)

    def _handle_reload(self, *_: object) -> None:
        if self.application is not None:  # else it has not read its configuration yet
            self.application.reload()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM. A second one changes nothing: process groups get one beside the master's."""
        if self._end_by is None:
            self._end_by = time.monotonic() + self.settings.stop_timeout
        self._wake()

    def handle_quit(self, sig: int, frame: Any) -> None:
        """SIGQUIT or SIGINT."""
        self.hasty = True
        self._end_by = time.monotonic()
        self._wake()

    def _wake(self) -> None:
        """Let the event loop take its next turn; a signal handler may call this."""
        self.method_queue.defer(lambda: None)

    def enqueue_req(self, conn: Any) -> None:
        """Have a thread answer the connection's next request."""
        self.busy.add(conn)
        super().enqueue_req(conn)

    def notify(self) -> None:
        """Tell the master that all is well, at each turn of the event loop; and come to an end."""
        super().notify()
        if self._end_by is not None:
            self._approach_end(time.monotonic(), self._end_by)

    def _approach_end(self, now: float, end_by: float) -> None:
        if self._running is None:
            self.application.drain()
            self._running = set(self.busy)
        self._running &= self.busy  # not who comes now, or a crowd that does would go on for ever
        soon = now if self.hasty else now + _LINGER
        _close_by(soon, self.keepalived_conns)
        _close_by(soon, self.lingering)
        if self._running:
            if now >= end_by:
                self._end_calls(now, self._running)
            return
        _close_by(soon, self.pending_conns)
        if self.alive:
            self.alive = False
            self._cut_by = soon
            self._wake()
        elif self._cut_by is not None and now >= self._cut_by:
            _interrupt(self.busy)
            if now >= self._cut_by + _CUT:
                _cut(self.busy)

    def _end_calls(self, now: float, running: set[Any]) -> None:
        if self._cut_by is None:
            self._cut_by = now + _CUT
            self.application.end_calls()
            _interrupt(running)
        elif now >= self._cut_by:
            _cut(running)

    def set_accept_enabled(self, enabled: bool | None) -> None:
        """Accept connections or not; at the end for good, so that nobody waits in vain."""
        super().set_accept_enabled(enabled)
        if not enabled and not self.alive:
            for listener in self.sockets:
                self._accept_all(listener)
                listener.close()

    def _accept_all(self, listener: Any) -> None:
        """Take every connection that has been made: it gets an answer still."""
        for _ in range(_BACKLOG):
            count = self.nr_conns
            self.accept(listener)
            if self.nr_conns == count:
                return


def _interrupt(connections: Iterable[Any]) -> None:
    """Let no thread wait any longer for the rest of a request; its client is told why."""
    for connection in connections:
        connection.sock.interrupted = True


def _cut(connections: Iterable[Any]) -> None:
    """Let no thread wait any longer for what these clients send or take."""
    for connection in connections:
        with suppress(OSError):  # it is closed already
            connection.sock.shutdown(socket.SHUT_RDWR)


def _close_by(deadline: float, connections: Iterable[Any]) -> None:
    """Let connections close by then at the latest; their order stays that of their times."""
    for connection in connections:
        connection.timeout = min(connection.timeout, deadline)
