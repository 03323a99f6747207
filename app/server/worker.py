"""gunicorn's thread worker, for clients that are slow, silent or broken.

It hands a connection to a thread only once there is something to read, closes connections outside
the event loop, keeps time on requests and answers, and says in JSON what is wrong with a request
that is no HTTP.
"""

import errno
import resource
import socket
import time
from functools import partial
from selectors import EVENT_READ
from typing import Any

from gunicorn.http.errors import (
    ExpectationFailed, LimitRequestHeaders, LimitRequestLine, ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.workers.gthread import TConn, ThreadWorker

from app import jsontext
from app.client_socket import ClientSocket
from app.settings import ServerSettings

_LINGER = 2.0  # s; for the client to take the last answer and to close
_GONE = (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK)
_STATUS: list[tuple[type[Exception], str]] = [
    (LimitRequestLine, "414 URI Too Long"),
    (LimitRequestHeaders, "431 Request Header Fields Too Large"),
    (ExpectationFailed, "417 Expectation Failed"),
    (UnsupportedTransferCoding, "501 Not Implemented"),
    (ParseException, "400 Bad Request"),
]


def worker_class(settings: ServerSettings) -> type[ThreadWorker]:
    """The worker class that keeps the limits of ``settings``."""
    return type("GatewayWorker", (_GatewayWorker,), {"settings": settings})


class _GatewayWorker(ThreadWorker):
    settings: ServerSettings

    def init_process(self) -> None:
        _allow_open_files()
        super().init_process()

    def accept(self, listener: socket.socket) -> None:
        """Take a connection and wait in the event loop, not in a thread, for its first byte."""
        try:
            accepted, address = listener.accept()
        except OSError as error:
            if error.errno in _GONE:
                return
            raise
        client = ClientSocket.of(accepted, self.settings.write_timeout)
        connection = TConn(self.cfg, client, address, listener.getsockname())
        connection.timeout = time.monotonic() + self.settings.body_timeout
        self.nr_conns += 1
        self.pending_conns.append(connection)
        readable = partial(self.on_pending_socket_readable, connection)
        self.poller.register(client, EVENT_READ, readable)

    def handle(self, connection: Any) -> Any:
        """Answer one request; the next one on this connection has its own time."""
        connection.sock.deadline = time.monotonic() + self.settings.body_timeout
        keep = super().handle(connection)
        if keep is False:
            # Here, where waiting for the client does not hold up the event loop.
            connection.sock.linger(_LINGER)
            connection.close()
        return keep

    def _keepalive_after(self, connection: Any, keepalive: bool) -> bool:
        """As gunicorn's, which discards a body nobody has read and has its own, shorter limit."""
        connection.sock.deadline = None
        return bool(super()._keepalive_after(connection, keepalive))  # type: ignore[misc]

    def load_wsgi(self) -> None:
        """Load the application; a response of it may close the connection."""
        super().load_wsgi()
        self.wsgi = _closing(self.wsgi)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer a request that is no valid HTTP, or one that failed outside the application."""
        status = next((text for kind, text in _STATUS if isinstance(exc, kind)), None)
        if status:
            self.log.warning("refused a request of %s: %s", (addr or ("?",))[0], exc)
        else:
            self.log.error("a request failed outside the application", exc_info=exc)
        path = getattr(req or getattr(exc, "req", None), "path", "")
        try:
            client.sendall(_answer(status or "500 Internal Server Error", str(exc), path))
        except OSError:
            self.log.debug("the client of a refused request is gone")


def _closing(application: Any) -> Any:
    """``application``, whose header ``Connection: close`` gunicorn would else drop and forget."""

    def call(environ: dict[str, Any], start_response: Any) -> Any:
        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            if ("Connection", "close") in headers:
                start_response.__self__.force_close()
            return start_response(status, headers, exc_info)

        return application(environ, start)

    return call


def _answer(status: str, reason: str, path: str) -> bytes:
    refused = not status.startswith("500")
    message = f"the request is not valid HTTP: {reason}" if refused else "the gateway failed"
    kind = "invalid_request_error" if refused else "server_error"
    error = {"message": message, "type": kind, "param": None,
             "code": None if refused else "internal_error"}
    body = jsontext.encode({"error": message if path.startswith("/api/") else error})
    head = (
        f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def _allow_open_files() -> None:
    """Every stream holds two sockets: take as many descriptors as this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
