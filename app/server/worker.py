"""gunicorn's thread worker, for clients that are slow, silent or broken.

It hands a connection to a thread only once the head of a request is whole, closes connections
outside the event loop, keeps time on requests and answers, and says in JSON what is wrong with a
request that is no HTTP.
"""

import errno
import gc
import os
import resource
import socket
import time
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker

from app.client_socket import ClientSocket
from app.cpus import keep_to_one
from app.server import refusal
from app.server.stopping import StoppingWorker
from app.settings import ServerSettings

_DRAINED = 65536  # bytes; the most that gunicorn takes off the wire to keep a connection
_DRAIN = 0.1  # s; for what is on its way already
_NEXT = 0.002  # s; for which a thread that has answered waits for the next request
_LINGER = 2.0  # s; for the client to take the last answer and to close
_GONE = (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK)


def worker_class(settings: ServerSettings) -> type[ThreadWorker]:
    """The worker class that keeps the limits of ``settings``."""
    return type("GatewayWorker", (_GatewayWorker,), {"settings": settings})


class _GatewayWorker(StoppingWorker):
    def init_process(self) -> None:
        _allow_open_files()
        if self.settings.one_cpu:
            keep_to_one()  # before there are other threads
        super().init_process()

    def is_parent_alive(self) -> bool:
        """Whether the master is there; this process ends at once with a master that was killed.

        gunicorn's own waits for running calls, on a port that nobody answers; the guards of engines
        end these.
        """
        if not super().is_parent_alive():
            os._exit(1)
        return True

    def accept(self, listener: socket.socket) -> None:
        """Take a connection and wait in the event loop, not in a thread, for its first byte."""
        try:
            accepted, address = listener.accept()
        except OSError as error:
            if error.errno in _GONE:
                return
            raise
        client = ClientSocket.of(accepted, self.settings.write_timeout)
        self.nr_conns += 1
        self._await_head(TConn(self.cfg, client, address, listener.getsockname()))

    def on_client_socket_readable(self, connection: Any, client: Any) -> None:
        """The next request of a kept connection begins."""
        if client.gather():
            super().on_client_socket_readable(connection, client)
            return
        self.poller.unregister(client)
        self.keepalived_conns.remove(connection)
        self._await_head(connection)

    def on_pending_socket_readable(self, connection: Any, client: Any) -> None:
        """More of a request's head has come; a thread gets it when the head is whole."""
        if client.gather():
            super().on_pending_socket_readable(connection, client)

    def _await_head(self, connection: Any) -> None:
        connection.timeout = time.monotonic() + self.settings.body_timeout
        connection.sock.deadline = connection.timeout
        self.pending_conns.append(connection)
        readable = partial(self.on_pending_socket_readable, connection)
        self.poller.register(connection.sock, EVENT_READ, readable)

    def handle(self, connection: Any) -> Any:
        """Answer one request, and those that follow at once; each has its own time.

        Without the way through the event loop, two hand-overs from thread to thread, a plain
        request costs 0.73 of what it did one at a time, 0.95 with 16 at a time.
        """
        while True:
            if connection.sock.deadline is None:
                connection.sock.deadline = time.monotonic() + self.settings.body_timeout
            kept = super().handle(connection)
            if kept is not True or not self._has_next(connection):
                return kept

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Answer in no later version than is spoken here; gunicorn repeats the client's.

        Source: RFC 9110, 2.5. A client that asks whether to go on with its body learns it later.
        """
        req.version = min(req.version, (1, 1))
        # Not told to go on before anyone reads the body, which may be refused for its length.
        conn.sock.asks, req._expected_100_continue = req._expected_100_continue, False
        return super().handle_request(req, conn)

    def _has_next(self, connection: Any) -> bool:
        """Whether the next request is here in a moment, and no other waits for this thread."""
        waiting: Any = self.tpool
        if waiting._work_queue.qsize() or connection.parser.unreader.buf.getvalue():
            return False
        return bool(connection.sock.arrives(_NEXT))

    def finish_request(self, connection: Any, future: Any) -> None:
        """Keep the connection, or close it once the client has taken the answer.

        Closing with bytes unread would reset the connection, and the client could lose the answer;
        gunicorn's own graceful close waits for the client in the event loop's thread.
        """
        self.busy.discard(connection)
        if future.cancelled() or future.exception() or future.result() is not False:
            self._keep(connection, future)
            return
        try:
            connection.sock.shutdown(socket.SHUT_WR)
            connection.sock.setblocking(False)
            self.poller.register(connection.sock, EVENT_READ, partial(self._discard, connection))
        except (OSError, ValueError):  # the client left, or it is closed already
            self._close(connection)
            return
        connection.timeout = time.monotonic() + _LINGER
        self.lingering.append(connection)

    def _keep(self, connection: Any, future: Any) -> None:
        """Wait for the next request, a part of which may be here and has its own time then."""
        if not connection.sock.ahead or connection.parser.unreader.buf.getvalue():
            super().finish_request(connection, future)
        elif connection.sock.holds_head:
            self.enqueue_req(connection)
        else:
            connection.sock.setblocking(False)
            self._await_head(connection)

    def murder_pending(self) -> None:
        """Close connections whose time is up: for a request's head, or for taking the answer."""
        super().murder_pending()
        while self.lingering and self.lingering[0].timeout <= time.monotonic():
            connection = self.lingering.popleft()
            self.poller.unregister(connection.sock)
            self._close(connection)

    def _discard(self, connection: Any, client: Any) -> None:
        if not client.discard():
            self.poller.unregister(client)
            self.lingering.remove(connection)
            self._close(connection)

    def _close(self, connection: Any) -> None:
        self.nr_conns -= 1
        connection.close()

    def _keepalive_after(self, connection: Any, keepalive: bool) -> bool:
        """Whether the connection can be kept: not while the rest of a body nobody reads is to come.

        gunicorn's own waits for it five seconds long, in the thread.
        """
        connection.sock.deadline = None
        unanswered, connection.sock.asks = connection.sock.asks, False
        if _is_read(connection.parser.mesg.body):
            return keepalive
        if unanswered:
            return False
        drained = time.monotonic() + _DRAIN
        return keepalive and bool(connection.parser.finish_body(deadline=drained))

    def load_wsgi(self) -> None:
        """Load the application; a response of it may close the connection."""
        super().load_wsgi()
        self.application = self.wsgi
        self.wsgi = self._closing(self.wsgi)
        # What is loaded now stays: looking through it again and again was 7 % of a plain request.
        gc.collect()
        gc.freeze()

    def _closing(self, application: Any) -> Any:
        """``application``, whose header ``Connection: close`` gunicorn would else drop and forget.

        Every response of a worker that is stopping has it.
        """

        def call(environ: dict[str, Any], start_response: Any) -> Any:
            def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
                asked = ("Connection", "close") in headers
                if asked or self.stopping or _is_left(environ):
                    start_response.__self__.force_close()
                return start_response(status, headers, exc_info)

            return application(environ, start)

        return call

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer a request that is no valid HTTP, or one that failed outside the application."""
        if refusal.status_of(exc):
            self.log.warning(
                "refused a request of %s: %s", (addr or ("?",))[0], refusal.reason(exc))
        else:
            self.log.error("a request failed outside the application", exc_info=exc)
        path = getattr(req or getattr(exc, "req", None), "path", "")
        try:
            client.sendall(refusal.answer(exc, path))
        except OSError:
            self.log.debug("the client of a refused request is gone")


def _is_read(body: Any) -> bool:
    """Whether nothing of a body is to come; gunicorn's own look at it costs three system calls."""
    left = getattr(body.reader, "length", getattr(body.reader, "parser", True))
    return not body.failed and not left  # bytes, or the parser of chunks that are still to come


def _is_left(environ: dict[str, Any]) -> bool:
    """Whether the connection has to close as too much of the body is left unread, or may come.

    A client that was not told to go on may send the body all the same, or not.
    """
    body = environ["wsgi.input"]
    length = int(getattr(getattr(body, "reader", None), "length", 0))
    return length > _DRAINED or (environ["gunicorn.socket"].asks and not _is_read(body))


def _allow_open_files() -> None:
    """Every stream holds two sockets: take as many descriptors as this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
