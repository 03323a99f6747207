"""The kernel keeps the time limits of a connection to an engine."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from app.engines.engine_socket import EngineSocket

BIG = bytes(8_000_000)  # more than two sockets hold


@pytest.fixture
def pair() -> Iterator[tuple[EngineSocket, socket.socket]]:
    """Our end with a limit of 50 ms, and the engine's."""
    ours, theirs = socket.socketpair()
    ours.settimeout(0.05)
    with EngineSocket.of(ours) as made, theirs:
        yield made, theirs


def test_it_is_the_same_connection(pair: tuple[EngineSocket, socket.socket]) -> None:
    """With the limit that it had, and blocking."""
    ours, theirs = pair
    assert ours.gettimeout() == 0.05 and ours.getblocking()
    theirs.sendall(b"abc")
    assert ours.receiver()() == b"abc"
    ours.sendall(b"def")
    assert theirs.recv(10) == b"def"


@pytest.mark.parametrize("limit", [0.05, 0.01])
def test_silence_is_a_timeout(pair: tuple[EngineSocket, socket.socket], limit: float) -> None:
    """Whoever receives; a limit that is set later counts from then on."""
    ours, _ = pair
    receive = ours.receiver()
    ours.settimeout(limit)
    with pytest.raises(TimeoutError):
        receive()
    with pytest.raises(TimeoutError):
        ours.makefile("rb").read(1)


def test_a_peer_that_takes_nothing_is_a_timeout(pair: tuple[EngineSocket, socket.socket]) -> None:
    """As soon as both kernels hold as much as they will."""
    ours, _ = pair
    with pytest.raises(TimeoutError):
        ours.sendall(BIG)


def test_without_a_limit_it_waits(pair: tuple[EngineSocket, socket.socket]) -> None:
    """None takes the limit away."""
    ours, theirs = pair
    ours.settimeout(None)
    assert ours.gettimeout() is None
    theirs.close()
    assert ours.receiver()() == b""
