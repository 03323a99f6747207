"""One accepted connection of a RawEngine."""

from __future__ import annotations

import socket
import struct
import threading


class Over(Exception):
    """The exchange has ended: this side closed, the peer left or the engine was stopped."""


class Connection:
    """One accepted connection; a thread of its own reads it, so that a leaving peer shows at once.

    `peer_closed` is set when the other side closes or resets.
    """

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.number = number
        self.peer_closed = threading.Event()
        self.closed = False
        self._socket = sock
        self._arrived = bytearray()
        self._news = threading.Condition()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        data = b"."
        while data:
            try:
                data = self._socket.recv(65536)
            except OSError:
                data = b""
            with self._news:
                self._arrived += data
                if not data and not self.closed:
                    self.peer_closed.set()
                self._news.notify_all()

    def receive(self, size: int) -> bytes:
        """Bytes from the peer, b"" once either side has closed; blocks."""
        with self._news:
            self._news.wait_for(
                lambda: self._arrived or self.closed or self.peer_closed.is_set())
            data = bytes(self._arrived[:size])
            del self._arrived[:size]
            return data

    def send(self, data: bytes) -> None:
        """Send `data` as it is; raises Over when the connection is gone."""
        try:
            self._socket.sendall(data)
        except OSError as cause:
            raise Over from cause

    def close(self, reset: bool = False) -> None:
        """Say goodbye, or with `reset` drop the connection without one; idempotent."""
        with self._news:
            if self.closed:
                return
            self.closed = True
            self._news.notify_all()
        if reset:
            linger = struct.pack("ii", 1, 0)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._wake_listener(socket.SHUT_RD if reset else socket.SHUT_RDWR)
        self._socket.close()

    def _wake_listener(self, how: int) -> None:
        # A socket that a thread still reads is not really closed by close(): no reset goes out.
        try:
            self._socket.shutdown(how)
        except OSError:
            pass  # the peer was faster
        self._listener.join()
