"""Every exception of the HTTP libraries, raised on the way to an engine, is one GatewayError."""

from __future__ import annotations

import http.client
import inspect
import socket
import ssl
from types import ModuleType
from typing import Any

import pytest
from requests import exceptions as req
from urllib3 import exceptions as u3

from app.engines.connection import StaleConnection
from app.engines.failures import Limits, mapped
from app.engines.hangup import Departure
from app.engines.response import HeadersCutShort, NothingReceived
from app.errors import GatewayError, Kind

URL = "http://127.0.0.1:1"
LIMITS = Limits(connect=2.0, read=0.5)
MODULES = [req, u3, http.client]

# Raised for proxies only, which are off, and no exception of urllib3's own family.
NEVER_RAISED = {u3.ProxySchemeUnsupported}


def exceptions_of(module: ModuleType) -> list[type[Exception]]:
    """The exceptions that a module defines; warnings are never raised here."""
    return [found for found in vars(module).values()
            if inspect.isclass(found) and issubclass(found, Exception)
            and found.__module__ == module.__name__ and not issubclass(found, Warning)
            and found not in NEVER_RAISED]


class Answer:
    """As much of a response as the exceptions ask for."""

    def tell(self) -> int:
        """How much was read."""
        return 3

    length_remaining = 5


# Constructor arguments by name, for exceptions that want more than a text.
ARGUMENTS: dict[str, Any] = {
    "pool": None, "conn": None, "url": "/", "message": "broken", "host": "nowhere",
    "reason": socket.gaierror(-2, "no"), "error": OSError("broken"), "response": Answer(),
    "length": b"x", "location": "x", "scheme": "x", "defects": [], "unparsed_data": b"",
    "line": "x", "line_type": "x", "version": "x", "retries": 3,
}
BY_HAND: dict[type[Exception], tuple[Any, ...]] = {
    req.JSONDecodeError: ("broken", "{", 1), http.client.IncompleteRead: (b"x",),
    u3.IncompleteRead: (3, 5),
}


def made(kind: type[Exception]) -> Exception:
    """An exception of this class as its library would make it."""
    if kind in BY_HAND:
        return kind(*BY_HAND[kind])
    _, *parameters = inspect.signature(kind.__init__).parameters.values()
    needed = [p.name for p in parameters
              if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return kind(*(ARGUMENTS[name] for name in needed)) if needed else kind("broken")


def translated(error: BaseException) -> GatewayError:
    """What comes out where this goes in."""
    with pytest.raises(GatewayError) as raised:
        with mapped(URL, LIMITS, Departure(None)):
            raise error
    assert raised.value.__cause__ is error
    return raised.value


SILENT_CONNECT = (Kind.ENGINE_TIMEOUT, "the engine did not answer within 2000 ms")
SILENT = (Kind.ENGINE_TIMEOUT, "the engine did not answer within 500 ms")
REFUSED = (Kind.ENGINE_UNAVAILABLE, f"no engine is listening at {URL}")
BY_CLASS: dict[type[Exception], tuple[Kind, str]] = {
    req.ConnectTimeout: SILENT_CONNECT, u3.ConnectTimeoutError: SILENT_CONNECT,
    req.ReadTimeout: SILENT, u3.ReadTimeoutError: SILENT,
    u3.NewConnectionError: REFUSED, u3.NameResolutionError: REFUSED,
}
ALL = list(dict.fromkeys(kind for module in MODULES for kind in exceptions_of(module)))


def test_there_are_exceptions_to_map() -> None:
    """Whoever changes how they are found sees that none is left."""
    assert {req.ConnectionError, u3.ProtocolError, http.client.BadStatusLine} <= set(ALL)
    assert len(ALL) > 50


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_no_exception_is_unmapped(kind: type[Exception]) -> None:
    """The kind says what happened to the engine, the message is a sentence."""
    error = translated(made(kind))
    if kind in BY_CLASS:
        assert (error.kind, error.message) == BY_CLASS[kind]
    elif kind in (req.Timeout, u3.TimeoutError):  # bases that are not raised by themselves
        assert error.kind in (Kind.ENGINE_TIMEOUT, Kind.UPSTREAM_ERROR)
    else:
        assert error.kind is Kind.UPSTREAM_ERROR
        start = "the connection to the engine failed: "
        assert error.message.startswith(start) and len(error.message) > len(start)


RESET = ConnectionResetError(104, "Connection reset by peer")
AS_RAISED: list[tuple[BaseException, tuple[Kind, str]]] = [
    (req.ConnectionError(u3.MaxRetryError(None, "/", u3.NewConnectionError(None, "refused"))),
     REFUSED),
    (req.ConnectionError(u3.MaxRetryError(
        None, "/", u3.NameResolutionError("nowhere", None, socket.gaierror(-2, "no")))), REFUSED),
    (req.ConnectTimeout(u3.MaxRetryError(None, "/", u3.ConnectTimeoutError(None, "slow"))),
     SILENT_CONNECT),
    (req.ReadTimeout(u3.ReadTimeoutError(None, "/", "slow")), SILENT),
    (req.ConnectionError(u3.ReadTimeoutError(None, "/", "slow")), SILENT),
    (req.ConnectionError(u3.ProtocolError("aborted", TimeoutError("timed out"))), SILENT),
    (TimeoutError("timed out"), SILENT),
    (req.ConnectionError(u3.ProtocolError("aborted", RESET)),
     (Kind.UPSTREAM_ERROR,
      "the connection to the engine failed: [Errno 104] Connection reset by peer")),
    (req.ChunkedEncodingError(u3.ProtocolError("cut", u3.IncompleteRead(3, 5))),
     (Kind.UPSTREAM_ERROR,
      "the connection to the engine failed: IncompleteRead(3 bytes read, 5 more expected)")),
    (req.ConnectionError(u3.ProtocolError("aborted", HeadersCutShort("its headers are cut short"))),
     (Kind.UPSTREAM_ERROR, "the connection to the engine failed: its headers are cut short")),
    (req.ConnectionError(u3.ProtocolError("aborted", NothingReceived("it closed"))),
     (Kind.UPSTREAM_ERROR, "the connection to the engine failed: it closed")),
    (req.SSLError(u3.MaxRetryError(None, "/", u3.SSLError(ssl.SSLError(1, "wrong version")))),
     (Kind.UPSTREAM_ERROR, "the connection to the engine failed: wrong version")),
    (BrokenPipeError(32, "Broken pipe"),
     (Kind.UPSTREAM_ERROR, "the connection to the engine failed: [Errno 32] Broken pipe")),
    (req.ConnectionError(),
     (Kind.UPSTREAM_ERROR, "the connection to the engine failed: ConnectionError")),
    (OSError("two\nlines " + "x" * 500),
     (Kind.UPSTREAM_ERROR, "the connection to the engine failed: two lines " + "x" * 190)),
]


@pytest.mark.parametrize(("error", "expected"), AS_RAISED, ids=lambda value: repr(value)[:50])
def test_the_innermost_cause_decides(
        error: BaseException, expected: tuple[Kind, str]) -> None:
    """The libraries wrap one exception in another: what really happened is found."""
    found = translated(error)
    assert (found.kind, found.message) == expected


@pytest.mark.parametrize("wrap", [
    lambda stale: stale, lambda stale: u3.ProtocolError("aborted", stale),
    lambda stale: req.ConnectionError(u3.ProtocolError("aborted", stale))])
def test_a_stale_connection_passes(wrap: Any) -> None:
    """The caller may send the call once more, so it gets the exception itself."""
    stale = StaleConnection("it closed")
    with pytest.raises(StaleConnection) as raised:
        with mapped(URL, LIMITS, Departure(None)):
            raise wrap(stale)
    assert raised.value is stale


@pytest.mark.parametrize("error", [
    KeyError("x"), ValueError("x"), TypeError("x"), RuntimeError("x"), KeyboardInterrupt(),
    GatewayError(Kind.UNKNOWN_MODEL, "x")])
def test_faults_of_the_gateway_are_not_the_engines(error: BaseException) -> None:
    """A bug must not look like a broken connection."""
    with pytest.raises(type(error)) as raised:
        with mapped(URL, LIMITS, Departure(None)):
            raise error
    assert raised.value is error
