"""A request's body of any size, as a file that is read piece by piece."""

import time
from collections.abc import Iterator
from typing import Any

from flask import current_app, request

from app.api.body import broken_body, pieces
from app.client_socket import ClientSocket

_PIECE = 65536  # bytes; the least that has to come within server.body-timeout


class Upload:
    """The current request's body; server.max-body does not count.

    Its time is measured by progress: every 64 KiB of it may take server.body-timeout.
    """

    def __init__(self) -> None:
        environ: dict[str, Any] = request.environ
        self._client = environ.get("gunicorn.socket")
        self._limit = float(current_app.config["BODY_TIMEOUT"])
        self._pieces: Iterator[bytes] = pieces(environ, _PIECE)

    @property
    def announced(self) -> int:
        """How many bytes it has, 0 where that is not said."""
        return request.content_length or 0

    def read(self, size: int = -1) -> bytes:
        """The next piece, of any size, b"" at the end; blocks for it, and raises GatewayError."""
        if isinstance(self._client, ClientSocket):
            self._client.deadline = time.monotonic() + self._limit
        with broken_body():
            return next(self._pieces, b"")
