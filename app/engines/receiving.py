"""Receives a body from an engine's socket while the kernel keeps the time."""

import socket
from collections.abc import Callable

from app.kernel_timing import interval

_AT_ONCE = 4096  # bytes, which every stream holds


def receiver(sock: socket.socket) -> Callable[[], bytes]:
    """What gives the next bytes of the socket, none at its end.

    It blocks for as long as the socket's time limit says; raises TimeoutError then. A limit that
    the socket gets later counts from then on.
    """
    limit = sock.gettimeout()
    if limit:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, interval(limit))
        sock.settimeout(None)

    # One for all: recv makes and shrinks one each time, which left 17 KB more of each stream.
    buffer = bytearray(_AT_ONCE)
    view = memoryview(buffer)

    def receive() -> bytes:
        try:
            return bytes(view[:sock.recv_into(buffer)])
        except BlockingIOError:
            raise TimeoutError("timed out") from None

    return receive
