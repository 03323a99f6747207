"""The connection to an engine: tells a stale one from a dead engine, and refuses half an answer."""

import http.client
from contextvars import ContextVar
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from app.engines.hangup import Departure

# The call that a connection works for. Between the session and its connections lie requests' and
# urllib3's pools, which hand on nothing of ours.
departure_of_call: ContextVar[Departure] = ContextVar("departure_of_call")


_NO_ANSWER = "it closed the connection without an answer"


class NothingReceived(ConnectionResetError):
    """The connection closed before one byte of answer."""


class StaleConnection(NothingReceived):
    """As NothingReceived, on a reused connection: the engine need not have seen the call."""


class HeadersCutShort(http.client.HTTPException):
    """The connection closed between the status line and the end of the headers."""


class _Watched:
    """A reader that knows what its last line was."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.last: bytes | None = None

    def readline(self, limit: int = -1) -> bytes:
        line: bytes = self._reader.readline(limit)
        self.last = line
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


class _Response(http.client.HTTPResponse):
    """http.client takes the end of the stream for the end of the headers; this one does not."""

    def begin(self) -> None:
        reader: Any = self.fp
        try:
            first = reader.peek(1)
        except ConnectionError as error:
            raise NothingReceived(_NO_ANSWER) from error
        if not first:
            raise NothingReceived(_NO_ANSWER)
        self.fp = watched = _Watched(reader)  # type: ignore[assignment]
        super().begin()
        if watched.last == b"":
            raise HeadersCutShort("its headers are cut short")
        self.fp = reader


class _Reusable:
    """Counts the answers of a connection, so that a reused one can be told from a fresh one."""

    response_class: Any = _Response
    sock: Any = None
    _answers = 0
    _departure: Departure | None = None

    def connect(self) -> None:
        self._answers = 0
        super().connect()  # type: ignore[misc]
        self._attach()

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            self._attach()
        super().request(*args, **kwargs)  # type: ignore[misc]

    def getresponse(self) -> Any:
        try:
            response = super().getresponse()  # type: ignore[misc]
        except NothingReceived as error:
            if self._answers:
                raise StaleConnection(str(error)) from error
            raise
        self._answers += 1
        return response

    def _attach(self) -> None:
        self._departure = departure_of_call.get(None)
        if self._departure:
            self._departure.attach(self.sock)

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
        super()._put_conn(connection)  # type: ignore[misc]


class _Pool(_Detaching, HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(_Detaching, HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class EngineAdapter(HTTPAdapter):
    """Keeps up to ``connections`` connections to one engine; more are opened and thrown away."""

    def __init__(self, connections: int) -> None:
        super().__init__(pool_connections=1, pool_maxsize=connections)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}

    def forget_connections(self) -> None:
        """Close the idle connections, so that the next call gets a fresh one."""
        self.poolmanager.clear()
