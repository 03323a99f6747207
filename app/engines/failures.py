"""Every exception of requests and urllib3, mapped once to what happened to the engine."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import requests
import urllib3
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ReadTimeoutError

from app.engines.connection import StaleConnection
from app.engines.hangup import Departure
from app.errors import GatewayError, Kind
from app.settings import EngineSettings


@dataclass(frozen=True)
class Limits:
    """How long an engine may take, in seconds: to connect, and between two of its bytes."""

    connect: float
    read: float

    @property
    def no_byte(self) -> str:
        """What is said of an engine that has sent nothing for longer than it may."""
        return f"the engine sent nothing for {round(self.read * 1000)} ms"


def limits_of(settings: EngineSettings) -> Limits:
    """The limits that an engine's settings, which are whole, name."""
    assert settings.connect_timeout and settings.read_timeout
    return Limits(settings.connect_timeout, settings.read_timeout)


class BrokenConnection(GatewayError):
    """The connection broke: the engine may have ended, and may have seen the call before."""

    @classmethod
    def because(cls, reason: str) -> "BrokenConnection":
        """The error for a reason in a few words."""
        text = f"the connection to the engine failed: {reason}"
        return cls(Kind.UPSTREAM_ERROR, text)


class Unconnected(GatewayError):
    """The engine did not even take the connection in time."""


@contextmanager
def mapped(url: str, limits: Limits, departure: Departure) -> Iterator[None]:
    """Turns what goes wrong between here and the engine at ``url`` into a GatewayError.

    What goes wrong after the client left is its leaving, and likewise with what else ends a call.
    StaleConnection passes as it is: the caller may send the call once more.
    """
    try:
        yield
    except (
        requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException, OSError
    ) as error:
        if departure.gone:
            raise departure.error() from error
        causes = list(_causes(error))
        for cause in causes:
            if isinstance(cause, StaleConnection):
                raise cause from error
        raise _translate(causes, url, limits) from error


def _translate(causes: list[BaseException], url: str, limits: Limits) -> GatewayError:
    """The first rule that fits any of the causes, most specific rule first."""

    def among(*types: type[BaseException]) -> bool:
        return any(isinstance(cause, types) for cause in causes)

    # A NewConnectionError is a ConnectTimeoutError to urllib3: refused, no route, no such name.
    if among(NewConnectionError):
        return GatewayError(Kind.ENGINE_UNAVAILABLE, f"no engine is listening at {url}")
    if among(ConnectTimeoutError, requests.ConnectTimeout):
        return Unconnected(Kind.ENGINE_TIMEOUT, _late(limits.connect))
    if among(ReadTimeoutError, requests.ReadTimeout, TimeoutError):
        return GatewayError(Kind.ENGINE_TIMEOUT, _late(limits.read))
    said = "".join(c if c.isprintable() else " " for c in str(causes[-1]))
    reason = " ".join(said.split())[:200] or type(causes[-1]).__name__
    return BrokenConnection.because(reason)


def _late(seconds: float) -> str:
    return f"the engine did not answer within {round(seconds * 1000)} ms"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it wraps, outermost first: requests wraps urllib3, which wraps OSError."""
    current: BaseException | None = error
    while current is not None:
        yield current
        inner = [arg for arg in (getattr(current, "reason", None), *current.args)
                 if isinstance(arg, BaseException)]
        current = inner[0] if inner else None
