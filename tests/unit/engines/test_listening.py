"""Who listens on a port: our processes, strangers, or nobody."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest

from app.engines.listening import Listener, listener, ports_of
from tests.fakes.processes import wait_until
from tests.unit.engines.conftest import Start

# Listens on the address and port given, with SO_REUSEPORT, says so, and waits.
LISTEN = """
import socket, sys, signal
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.socket(family) as server:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind((sys.argv[1], int(sys.argv[2])))
    server.listen()
    print(server.getsockname()[1], flush=True)
    signal.pause()
"""


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """Another process that listens on a port of 127.0.0.1, which it has written down."""
    command = [sys.executable, "-S", "-c", LISTEN, "127.0.0.1", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def port_of(process: subprocess.Popen[bytes]) -> int:
    """The port that it writes down; blocks until it does."""
    assert process.stdout
    return int(process.stdout.readline())


def ours() -> list[int]:
    """This process."""
    return [os.getpid()]


def listening(address: str, port: int = 0) -> socket.socket:
    """A socket of this process that listens there."""
    server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind((address, port))
    server.listen()
    return server


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"])
def test_ours_by_every_address_that_is_reached(address: str) -> None:
    """127.0.0.1, as IPv6 writes it too, or all addresses; a stranger's for other processes."""
    with listening(address) as server:
        port = server.getsockname()[1]
        assert listener(port, ours) is Listener.OURS
        assert listener(port, lambda: []) is Listener.STRANGER
        assert ports_of(ours()) >= {port}
    assert listener(port, ours) is Listener.NOBODY


@pytest.mark.parametrize("address", ["127.0.0.2", "::1"])
def test_other_addresses_are_not_reached(address: str) -> None:
    """What listens there gets no connection to 127.0.0.1, and is found all the same."""
    with listening(address) as server:
        port = server.getsockname()[1]
        assert listener(port, ours) is Listener.NOBODY
        assert ports_of(ours()) >= {port}


def test_only_those_who_listen_count() -> None:
    """Neither who is bound without listening, nor the two ends of a connection."""
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        assert listener(bound.getsockname()[1], ours) is Listener.NOBODY
    server = listening("127.0.0.1")
    with socket.create_connection(server.getsockname()), server.accept()[0] as accepted:
        server.close()
        assert listener(accepted.getsockname()[1], ours) is Listener.NOBODY


def test_a_strangers_port(stranger: subprocess.Popen[bytes]) -> None:
    """What another process listens on is not ours, even when we do so as well."""
    port = port_of(stranger)
    assert listener(port, ours) is Listener.STRANGER
    with listening("127.0.0.1", port):
        assert listener(port, ours) is Listener.STRANGER
        assert listener(port, lambda: [os.getpid(), stranger.pid]) is Listener.OURS
        stranger.kill()
        stranger.wait()
        assert listener(port, ours) is Listener.OURS


def test_a_socket_that_changes_hands_is_no_strangers() -> None:
    """One that a child has taken over while we looked is found at the second look."""
    looks = iter([[], [os.getpid()]])
    with listening("127.0.0.1") as server:
        assert listener(server.getsockname()[1], lambda: next(looks)) is Listener.OURS


def test_the_table_is_read_before_our_processes() -> None:
    """They are asked for only where anybody listens."""
    def fail() -> list[int]:
        raise AssertionError("asked for")

    with listening("127.0.0.1") as server:
        port = server.getsockname()[1]
    assert listener(port, fail) is Listener.NOBODY


def test_processes_that_are_gone_listen_nowhere() -> None:
    """Nor do those that may not be looked at."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert ports_of([process.pid]) == set()


@pytest.mark.parametrize("script", [
    "exec {listen}", "sh -c '{listen}; true' & wait", "(setsid {listen} &) ; sleep 1000"],
    ids=["itself", "grandchild", "daemon"])
def test_an_engine_listens_by_any_of_its_processes(start: Start, script: str) -> None:
    """Below the guard all is ours, and so is its port."""
    listen = f'{sys.executable} -S -c "$LISTEN" 0.0.0.0 0'
    os.environ["LISTEN"] = LISTEN
    try:
        process = start(script.format(listen=listen))
    finally:
        del os.environ["LISTEN"]
    wait_until(process.last_line, "the port")
    port = int(process.last_line())
    assert process.listener(port) is Listener.OURS
    assert process.ports() == {port}
    process.stop()
    assert process.listener(port) is Listener.NOBODY
    assert process.ports() == set()


def test_an_engine_beside_a_stranger(start: Start, stranger: subprocess.Popen[bytes]) -> None:
    """An engine that listens elsewhere has no part in the stranger's port."""
    port = port_of(stranger)
    process = start("echo up; exec sleep 1000")
    wait_until(process.last_line, "its first line")
    assert process.listener(port) is Listener.STRANGER
