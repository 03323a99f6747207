"""The record of each request: begun before anything else, ended exactly once, on every path."""

import time
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

from flask import Flask, request

from app.record import Record
from app.telemetry.observer import Observer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_KEY = "loop.record"


def record() -> Record:
    """The record of the current request."""
    found: Record = request.environ[_KEY]
    return found


def register(app: Flask, observer: Observer) -> None:
    """Let every request have a record. To be called before others look at requests."""
    app.before_request(_note_route)
    app.wsgi_app = _Recorder(app.wsgi_app, observer)  # type: ignore[method-assign]


def _note_route() -> None:
    rule = request.url_rule
    if rule is not None:
        record().route = rule.rule


class _Recorder:
    """A WSGI application around another one.

    Outside of Flask, because neither a failing error handler nor a response that is never started
    gets past it.
    """

    def __init__(self, application: "WSGIApplication", observer: Observer) -> None:
        self._application = application
        self._observer = observer

    def __call__(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        made = environ[_KEY] = Record(environ["REQUEST_METHOD"])

        def start(status: str, *rest: Any) -> Any:
            made.status = int(status[:3])
            return start_response(status, *rest)

        self._observer.begin()
        try:
            return _Answer(self._application(environ, start), made, self._observer.end)
        except BaseException:
            made.status = made.status or 500
            self._observer.end(made)
            raise


class _Answer:
    """The pieces of an answer on their way to the client; the record ends with them."""

    def __init__(
        self, pieces: Iterable[bytes], made: Record, end: Callable[[Record], None]
    ) -> None:
        self._pieces = pieces
        self._record = made
        self._end: Callable[[Record], None] | None = end
        self._passing = self._counted()
        self._begun = False

    def __iter__(self) -> Generator[bytes, None, None]:
        self._begun = True
        return self._passing

    def close(self) -> None:
        """Whoever took the pieces takes no more of them, whether or not there are more."""
        end, self._end = self._end, None
        if end is None:
            return
        if not self._begun:
            self._record.abandoned()
        try:
            self._passing.close()  # before what it runs on
            if close := getattr(self._pieces, "close", None):
                close()
        finally:
            end(self._record)

    def _counted(self) -> Generator[bytes, None, None]:
        """The pieces, of which those count that the client took before it was given the next."""
        made, size = self._record, 0
        pieces = iter(self._pieces)
        try:
            for piece in pieces:
                made.first_byte = time.monotonic() - made.began
                yield piece
                size += len(piece)
                break
            for piece in pieces:
                yield piece
                size += len(piece)
        except GeneratorExit:
            made.abandoned()
            raise
        except BaseException:
            made.error = made.error or "internal"
            raise
        finally:
            made.bytes_out = size
