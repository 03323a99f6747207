"""Passes an engine's stream on as it comes, and never lets a broken one look whole."""

import errno
from collections.abc import Iterator

from app.api.errors import document
from app.api.terminal import Ending
from app.call import Reply
from app.errors import GatewayError, Kind
from app.record import Record

_CUT = GatewayError(Kind.UPSTREAM_ERROR, "the engine ended its answer before it was complete")


def events(reply: Reply, ending: Ending, path: str, record: Record) -> Iterator[bytes]:
    """A text/event-stream: the engine's bytes, and one error event where it does not end well."""
    error: GatewayError | None = None
    try:
        for piece in reply.pieces:
            ending.see(piece)
            yield piece
    except GatewayError as failure:
        error = failure
    if error and (ending.over or ending.ends_in_a_mark()):
        yield ending.rest_of_event()  # all that the engine had left to say
    elif error or ending.open_ended():
        record.broke_off((error or _CUT).kind)
        yield ending.failure(error or _CUT, path)


def lines(reply: Reply, record: Record) -> Iterator[bytes]:
    """An application/x-ndjson stream: the engine's bytes, and one error line where it breaks."""
    last = b"\n"
    try:
        for piece in reply.pieces:
            last = piece[-1:]
            yield piece
    except GatewayError as error:
        record.broke_off(error.kind)
        if error.kind is not Kind.CLIENT_GONE:
            yield (b"" if last == b"\n" else b"\n") + document(error, "/api/")[1] + b"\n"


def content(reply: Reply, record: Record) -> Iterator[bytes]:
    """Any other body: where the engine breaks off, the connection to the client breaks too.

    In the midst of a picture or of speech there is no way to say more; the missing end of a chunked
    body, or of the announced length, says that much. Raises BrokenPipeError for that.
    """
    try:
        yield from reply.pieces
    except GatewayError as error:
        record.broke_off(error.kind)
        raise BrokenPipeError(errno.EPIPE, "the engine's answer broke off") from error
