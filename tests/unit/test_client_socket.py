"""A client's socket: its request has a deadline, each piece of its answer a time limit."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from gunicorn.http.errors import NoMoreData

from app.client_socket import ClientSocket, Interrupted, Overdue

PATIENCE = 20.0
WRITE_TIMEOUT = 0.2
LARGE = bytes(8 * 2**20)  # more than the kernel buffers of a connection hold

Pair = tuple[ClientSocket, socket.socket]


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection over loopback, the accepted one first."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        far = socket.create_connection(listener.getsockname())
        return listener.accept()[0], far


@pytest.fixture(params=[socket.socketpair, tcp_pair], ids=["pair", "tcp"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The gateway's end, which waits that long for a piece to be taken, and the client's end."""
    near, far = request.param()
    far.settimeout(PATIENCE)
    client = ClientSocket.of(near, WRITE_TIMEOUT)
    with client, far:
        yield client, far


def soon(seconds: float) -> float:
    """A deadline that many seconds from now."""
    return time.monotonic() + seconds


def test_the_accepted_socket_is_used_up(pair: Pair) -> None:
    """The connection has one owner, so that it is closed once."""
    near, far = tcp_pair()
    with far:
        client = ClientSocket.of(near, 1.0)
        assert near.fileno() == -1
        client.close()
        assert far.recv(1) == b""


def test_patience_is_for_silence(pair: Pair) -> None:
    """Each piece may take so long, but not longer than the deadline."""
    client, far = pair
    client.deadline, client.patience = soon(PATIENCE), 0.05
    for _ in range(3):
        far.sendall(b"x")
        assert client.recv(10) == b"x"
    with pytest.raises(Overdue):
        client.recv(10)
    client.deadline, client.patience = soon(0.05), PATIENCE
    with pytest.raises(Overdue):
        client.recv(10)


def test_a_thread_that_waits_can_be_interrupted(pair: Pair) -> None:
    """By any other thread; what it would read next is not read."""
    client, far = pair
    client.deadline = soon(PATIENCE)
    timer = threading.Timer(0.05, lambda: setattr(client, "interrupted", True))
    timer.start()
    with pytest.raises(Interrupted):
        client.recv(10)
    timer.join()
    far.sendall(b"x")
    with pytest.raises(NoMoreData):
        client.recv(10)


def test_who_asks_is_told_to_go_on_when_more_is_read(pair: Pair) -> None:
    """Once; not where all that is wanted is there already."""
    client, far = pair
    client.deadline, client.asks, client.ahead = soon(PATIENCE), True, b"ab"
    assert client.recv(2) == b"ab" and client.asks
    far.sendall(b"c")
    assert client.recv(1) == b"c" and not client.asks
    far.sendall(b"d")
    assert client.recv(1) == b"d"
    assert far.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_what_a_client_sends_is_received(pair: Pair) -> None:
    """With a deadline and without one."""
    client, far = pair
    for deadline in (None, soon(PATIENCE)):
        client.deadline = deadline
        far.sendall(b"hello")
        assert client.recv(3) + client.recv(100) == b"hello"
    far.shutdown(socket.SHUT_WR)
    assert client.recv(1) == b""


def test_a_client_that_sends_nothing_is_overdue(pair: Pair) -> None:
    """At its deadline and not before."""
    client, _ = pair
    client.deadline = soon(0.1)
    with pytest.raises(Overdue):
        client.recv(1)
    assert time.monotonic() >= client.deadline


def test_a_client_that_drips_is_overdue(pair: Pair) -> None:
    """The deadline is for the whole request: a byte now and then does not move it."""
    client, far = pair
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.01):
            far.sendall(b".")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        client.deadline = soon(0.2)
        with pytest.raises(Overdue):
            while client.recv(1):
                pass
        assert time.monotonic() >= client.deadline
    finally:
        stop.set()
        dripping.join()


def test_past_its_deadline_nothing_is_read(pair: Pair) -> None:
    """Not even what has arrived."""
    client, far = pair
    far.sendall(b"late")
    client.deadline = soon(-0.001)
    with pytest.raises(Overdue):
        client.recv(4)


def test_overdue_looks_to_gunicorn_like_a_client_that_stopped() -> None:
    """Its parser handles that error at every point of a request."""
    assert issubclass(Overdue, NoMoreData)


def test_a_new_deadline_holds_from_then_on(pair: Pair) -> None:
    """The next request on the connection has its own time, however short the last one's was."""
    client, far = pair
    client.deadline = soon(0.05)
    with pytest.raises(Overdue):
        client.recv(1)
    client.deadline = soon(PATIENCE)
    timer = threading.Timer(0.15, far.sendall, [b"x"])
    timer.start()
    try:
        assert client.recv(1) == b"x"
    finally:
        timer.join()


def test_a_write_does_not_shorten_the_deadline(pair: Pair) -> None:
    """The time limit of an answer is not that of the request."""
    client, far = pair
    client.deadline = soon(PATIENCE)
    client.sendall(b"interim")
    timer = threading.Timer(0.4, far.sendall, [b"x"])
    timer.start()
    try:
        assert client.recv(1) == b"x"
    finally:
        timer.join()


def test_a_client_that_reads_gets_everything(pair: Pair) -> None:
    """Any amount, in any type of buffer."""
    client, far = pair
    sending = threading.Thread(target=client.sendall, args=(memoryview(LARGE),))
    sending.start()
    got = 0
    while got < len(LARGE):
        got += len(far.recv(2**20))
    sending.join()
    assert got == len(LARGE)


def test_a_client_that_reads_slowly_gets_everything(pair: Pair) -> None:
    """The limit is for each piece: an answer may take many times as long."""
    client, far = pair
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    data = LARGE[:2**20]
    sending = threading.Thread(target=client.sendall, args=(data,))
    started = time.monotonic()
    sending.start()
    got = 0
    while got < len(data):
        got += len(far.recv(65536))
        threading.Event().wait(0.02)
    sending.join()
    assert got == len(data)
    assert time.monotonic() - started > WRITE_TIMEOUT


def test_a_client_that_reads_nothing_is_given_up(pair: Pair) -> None:
    """As if it had left."""
    client, _ = pair
    with pytest.raises(BrokenPipeError, match="the client takes no bytes"):
        client.sendall(LARGE)


def test_a_client_that_stops_reading_is_given_up(pair: Pair) -> None:
    """What it took before does not help it."""
    client, far = pair
    reading = threading.Thread(target=far.recv, args=(1000,))
    reading.start()
    with pytest.raises(BrokenPipeError, match="the client takes no bytes"):
        client.sendall(LARGE)
    reading.join()


@pytest.mark.parametrize("linger", [None, struct.pack("ii", 1, 0)], ids=["closed", "reset"])
def test_a_client_that_left_is_noticed(pair: Pair, linger: bytes | None) -> None:
    """The error is one of those that gunicorn takes for a client gone."""
    client, far = pair
    if linger:
        far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    far.close()
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        client.sendall(LARGE)
