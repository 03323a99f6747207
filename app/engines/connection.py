"""The connection to an engine: tells a stale one from a dead engine, and refuses half an answer."""

import http.client
import socket
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from app.engines.engine_socket import EngineSocket
from app.engines.hangup import Departure
from app.engines.response import EngineResponse, NothingReceived

_PIECE = 65536  # bytes sent under one time limit


@dataclass(frozen=True)
class Working:
    """The call that a connection works for: whose client may leave, and how long the engine may
    take no byte of it (seconds).
    """

    departure: Departure
    limit: float


# Between the session and its connections lie requests' and urllib3's pools, which hand on nothing.
working: ContextVar[Working] = ContextVar("working")


class StaleConnection(NothingReceived):
    """As NothingReceived, on a reused connection: the engine need not have seen the call."""


class _Reusable:
    """Counts the answers of a connection, so that a reused one can be told from a fresh one."""

    response_class: Any = EngineResponse
    sock: Any = None
    _answers = 0
    _answer: http.client.HTTPResponse | None = None
    _departure: Departure | None = None
    _held: bytes | None = None  # empty: the head, which is sent next

    def connect(self) -> None:
        self._answers = 0
        super().connect()  # type: ignore[misc]
        if type(self.sock) is socket.socket:  # not one of TLS
            self.sock = EngineSocket.of(self.sock)
        self._attach()

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            self._attach()
            self.timeout = self.sock.gettimeout()  # which request() sets once more
        body = kwargs.get("body")
        small = isinstance(body, (bytes, bytearray)) and 0 < len(body) <= _PIECE
        self._held = b"" if small else None
        super().request(*args, **kwargs)  # type: ignore[misc]

    def send(self, data: Any) -> None:
        """As http.client's; the limit is for each piece the engine takes, not for all of a body.

        The head waits for a small body, for the gain that ``read_headers`` tells of.
        """
        if self._held == b"":
            self._held = data
            return
        if self._held:
            data, self._held = self._held + data, None
        if not isinstance(data, (bytes, bytearray)) or len(data) <= _PIECE:
            super().send(data)  # type: ignore[misc]
            return
        view = memoryview(data)
        for start in range(0, len(view), _PIECE):
            super().send(view[start:start + _PIECE])  # type: ignore[misc]

    def getresponse(self) -> Any:
        try:
            response = super().getresponse()  # type: ignore[misc]
        except NothingReceived as error:
            if self._answers:
                raise StaleConnection(str(error)) from error
            raise
        self._answers += 1
        self._answer = response._original_response
        return response

    @property
    def cut_short(self) -> bool:
        """Whether the last answer ended before its announced length: nothing more comes here."""
        return bool(self._answer is not None and self._answer.length)

    def _attach(self) -> None:
        found = working.get(None)
        if found:
            self._departure = found.departure
            self._departure.attach_socket(self.sock)
            self.sock.settimeout(found.limit)

    def detach(self) -> None:
        """The call is done with this connection; its client may leave without harm to the next."""
        if self._departure:
            self._departure.detach()
            self._departure = None


class _Connection(_Reusable, HTTPConnection):
    pass


class _SecureConnection(_Reusable, HTTPSConnection):
    pass


class _Detaching:
    """Parts a connection from its call before another call can have it."""

    def _put_conn(self, connection: Any) -> None:
        if connection is not None:
            connection.detach()
            if connection.cut_short:
                connection.close()
        super()._put_conn(connection)  # type: ignore[misc]


class _Pool(_Detaching, HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(_Detaching, HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class EngineAdapter(HTTPAdapter):
    """Keeps up to ``connections`` connections to one engine; more are opened and thrown away.

    What requests finds out for each request, and is the same for all to one engine or of no use
    here, is found once or left out: a plain request costs 0.92 of what it did.
    """

    def __init__(self, url: str, connections: int) -> None:
        super().__init__(pool_connections=1, pool_maxsize=connections)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
        parts = urlsplit(url)
        self._origin = len(f"{parts.scheme}://{parts.netloc}")
        self._pools: list[Any] = []

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        """The one pool of this engine."""
        pools = self._pools
        if not pools:
            pools.append(super().get_connection_with_tls_context(*args, **kwargs))
        return pools[0]

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        """Path and query, as they stand in the URL."""
        assert request.url
        return request.url[self._origin:]

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        """A response that has ``raw``, and for who looks on its request and status: no cookies."""
        made = requests.Response.__new__(requests.Response)
        made.raw, made.request = resp, req
        made.status_code, made.headers = resp.status, resp.headers
        return made

    def close(self) -> None:
        """Close the idle connections, so that the next call gets a fresh one."""
        super().close()
        self._pools = []  # a new list: who has the old one may still put a closed pool into it


def chunks(answer: Any) -> Iterator[bytes]:
    """The chunked body of urllib3's ``answer`` as it arrives; its connection is free then.

    Raises http.client.HTTPException and OSError; whoever catches them closes the answer.
    """
    original = answer._original_response
    if original.fp is not None:  # closed where there is no body at all
        yield from original.arriving()
    answer.release_conn()
