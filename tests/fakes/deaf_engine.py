"""An engine that takes connections but reads nothing from them until the test tells it to."""

from __future__ import annotations

import array
import fcntl
import socket
import termios

from tests.fakes.processes import wait_until

PATIENCE = 20.0
BUFFER = 65536  # bytes that its kernel takes without it
_PIECE = 65536


class DeafEngine:
    """Listens on a free port of 127.0.0.1 from entering to leaving the context.

    Its methods block, and raise TimeoutError or AssertionError after PATIENCE seconds.
    """

    def __init__(self) -> None:
        self._listener = socket.socket()
        # Accepted sockets inherit it: a small buffer makes whoever sends wait early.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        self._listener.settimeout(PATIENCE)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._accepted: list[socket.socket] = []

    def __enter__(self) -> DeafEngine:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in [self._listener, *self._accepted]:
            sock.close()

    def accept(self) -> socket.socket:
        """The next connection, once the beginning of a request waits in it unread."""
        sock, _ = self._listener.accept()
        sock.settimeout(PATIENCE)
        self._accepted.append(sock)
        wait_until(lambda: _unread(sock), "a request to arrive")
        return sock


def take(sock: socket.socket, size: int) -> bytes:
    """Up to this many bytes, fewer where the peer closed before."""
    taken = bytearray()
    while len(taken) < size:
        try:
            piece = sock.recv(min(_PIECE, size - len(taken)))
        except ConnectionResetError:
            piece = b""
        if not piece:
            break
        taken += piece
    return bytes(taken)


def _unread(sock: socket.socket) -> int:
    size = array.array("i", [0])
    fcntl.ioctl(sock, termios.FIONREAD, size)
    return size[0]
