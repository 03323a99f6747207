"""A Redis server that knows what a counter needs: a script that counts, GET and TTL.

It is an old one, before version 6, which knows RESP2 only.
"""

from __future__ import annotations

import socketserver
import threading
import time
from typing import BinaryIO

_SHA = b"0" * 40


class RedisServer(socketserver.ThreadingTCPServer):
    """A server on a free port of 127.0.0.1, serving from entering to leaving the context.

    While it is `broken` it closes every connection instead of an answer; `asked` counts commands.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"redis://127.0.0.1:{self.server_address[1]}"
        self.broken = False
        self.asked = 0
        self._lock = threading.Lock()
        self._counters: dict[bytes, tuple[int, float]] = {}

    def __enter__(self) -> RedisServer:
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def answer(self, command: list[bytes]) -> bytes:
        """The answer to one command, in RESP (redis.io, protocol specification)."""
        with self._lock:
            self.asked += 1
        name = command[0].upper()
        if name == b"HELLO":
            return b"-ERR unknown command 'HELLO'\r\n"
        if name == b"SCRIPT":
            return b"$40\r\n%b\r\n" % _SHA
        if name == b"EVALSHA":
            _, _, _, key, expiry, amount = command
            return b":%d\r\n" % self._count(key, float(expiry), int(amount))
        count, ends = self._counters.get(command[1], (0, 0.0)) if len(command) > 1 else (0, 0.0)
        if name == b"GET":
            return b"$%d\r\n%d\r\n" % (len(b"%d" % count), count) if count else b"$-1\r\n"
        if name == b"TTL":
            return b":%d\r\n" % (round(ends - time.monotonic()) if count else -2)
        return b"+OK\r\n"

    def _count(self, key: bytes, expiry: float, amount: int) -> int:
        with self._lock:
            count, ends = self._counters.get(key, (0, time.monotonic() + expiry))
            self._counters[key] = count + amount, ends
            return count + amount


class _Handler(socketserver.StreamRequestHandler):
    server: RedisServer
    rfile: BinaryIO

    def handle(self) -> None:
        """Answer commands until the client leaves."""
        while (line := self.rfile.readline()) and not self.server.broken:
            command = [self._bulk() for _ in range(int(line[1:]))]
            if self.server.broken:
                return
            self.wfile.write(self.server.answer(command))

    def _bulk(self) -> bytes:
        size = int(self.rfile.readline()[1:])
        return self.rfile.read(size + 2)[:-2]
