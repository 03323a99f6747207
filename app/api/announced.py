"""How large a body is going to be, as far as the client has said so: known before it has come."""

from typing import Any

from gunicorn.http.body import ChunkedReader

from app.client_socket import ClientSocket

_SILENCE = 1.0  # s; for which nothing more may come of a body that is too large


class Announced:
    """The size of a request's body by its Content-Length, or by the chunks that have begun.

    Once that is over the limit the client is waited for only as long as it goes on sending.
    """

    def __init__(self, environ: dict[str, Any], limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._client = environ.get("gunicorn.socket")
        self.note(int(environ.get("CONTENT_LENGTH") or 0))
        reader = getattr(environ["wsgi.input"], "reader", None)
        if isinstance(reader, ChunkedReader):
            self._read_size = reader.parse_chunk_size
            reader.parse_chunk_size = self._next_chunk  # type: ignore[method-assign]

    @property
    def excess(self) -> bool:
        """Whether it is more than the limit."""
        return self.size > self._limit

    @property
    def refusable(self) -> bool:
        """Whether it is, and the client has asked before it sends any of it."""
        return self.excess and isinstance(self._client, ClientSocket) and self._client.asks

    def note(self, size: int) -> None:
        """It has at least so many bytes."""
        self.size = max(self.size, size)
        if self.excess and isinstance(self._client, ClientSocket):
            self._client.patience = _SILENCE

    def _next_chunk(self, unreader: Any, data: Any = None) -> Any:
        size, rest = self._read_size(unreader, data=data)
        self.note(self.size + size)
        return size, rest
