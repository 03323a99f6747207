"""An engine on a bare socket: it keeps what it got byte for byte and answers, or fails, by script.

A script is a callable, or a list of callables run in turn, each taking the `Exchange`; the module
`engine_steps` has the usual ones. The first POST gets the first script, the second the second, and
the last one goes on for ever. Anything but a POST is a probe: kept apart, and answered by
`probe_script` without using up a script.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Union

from tests.fakes.raw_connection import Connection, Over
from tests.fakes.wire import (
    Cut, Headers, Malformed, Wire, body_length, is_chunked, read_chunks, read_head, values,
)

PATIENCE = 20.0
Step = Callable[["Exchange"], None]
Script = Union[Step, Sequence[Step]]


@dataclass(frozen=True)
class RawRequest:
    """One request as it came; `connection` counts connections from 1."""

    line: str
    headers: Headers
    body: bytes
    connection: int

    def all(self, name: str) -> list[str]:
        """Every value of the header field `name`, in order."""
        return values(self.headers, name)

    @property
    def path(self) -> str:
        """The request target."""
        return self.line.split(" ")[1]


class Exchange:
    """One request and the connection its answer goes to."""

    def __init__(self, request: RawRequest, connection: Connection) -> None:
        self.request = request
        self._connection = connection
        self.send = connection.send
        self.peer_closed = connection.peer_closed

    def chunk(self, data: bytes) -> None:
        """Send `data` as one chunk; b"" is the last one."""
        self.send(b"%x\r\n%b\r\n" % (len(data), data))

    def wait(self, event: threading.Event) -> None:
        """Block until `event`; raises Over when the peer leaves or the engine stops first."""
        while not event.wait(0.01):
            if self.peer_closed.is_set() or self._connection.closed:
                raise Over

    def close(self) -> None:
        """Close the connection politely; ends the exchange."""
        self._connection.close()
        raise Over

    def reset(self) -> None:
        """Reset the connection; ends the exchange."""
        self._connection.close(reset=True)
        raise Over


class RawEngine:
    """A scripted engine on 127.0.0.1, serving from entering to leaving the context.

    Its port is a free one, or the one that is asked for.

    `answer_with` starts over with other scripts: open
    connections are closed and all notes forgotten.
    """

    def __init__(self, *scripts: Script, port: int = 0) -> None:
        self.probe_script: Script = _no_probes
        self._news = threading.Condition()
        self._failures: list[BaseException] = []
        self._all: list[Connection] = []
        self._forget(scripts)
        self._listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _forget(self, scripts: Sequence[Script]) -> None:
        self._scripts = list(scripts)
        self.requests: list[RawRequest] = []
        self.probes: list[RawRequest] = []
        self.connections: list[Connection] = []

    def __enter__(self) -> RawEngine:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._close_all()
        self.raise_failures()

    def raise_failures(self) -> None:
        """Raise what went wrong in a script, or with a request that was no proper HTTP."""
        failures, self._failures = self._failures, []
        if failures:
            raise failures[0]

    def answer_with(self, *scripts: Script) -> None:
        """Forget everything and answer the next requests by `scripts`."""
        self._close_all()
        with self._news:
            self._forget(scripts)

    def wait_for_requests(self, count: int) -> list[RawRequest]:
        """The requests, once there are `count`; raises AssertionError when they do not come."""
        with self._news:
            came = self._news.wait_for(lambda: len(self.requests) >= count, PATIENCE)
            assert came, f"{len(self.requests)} requests reached the engine, not {count}"
            return list(self.requests)

    def _close_all(self) -> None:
        with self._news:
            connections, self._all = self._all, []
        for connection in connections:
            connection.close()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._news:
                connection = Connection(sock, len(self.connections) + 1)
                self.connections.append(connection)
                self._all.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        wire = Wire(connection.receive)
        try:
            while True:
                request = _read_request(wire, connection.number)
                for step in _steps(self._note(request)):
                    step(Exchange(request, connection))
        except (Over, Cut):
            connection.close()
        except BaseException as failure:
            self._failures.append(failure)
            connection.close(reset=True)

    def _note(self, request: RawRequest) -> Script:
        with self._news:
            if not request.line.startswith("POST "):
                self.probes.append(request)
                return self.probe_script
            self.requests.append(request)
            self._news.notify_all()
            return self._scripts[min(len(self.requests), len(self._scripts)) - 1]


def _steps(script: Script) -> Sequence[Step]:
    return [script] if callable(script) else script


def _no_probes(exchange: Exchange) -> None:
    exchange.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")


def _read_request(wire: Wire, connection: int) -> RawRequest:
    line, headers = read_head(wire)
    if len(line.split(" ")) != 3:
        raise Malformed(f"no request line: {line!r}")
    length = body_length(headers) or 0
    body = b"".join(read_chunks(wire)) if is_chunked(headers) else wire.exactly(length)
    return RawRequest(line, headers, body, connection)
