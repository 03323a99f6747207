"""What an engine's answer means: passed on, or reported as a fault of the engine."""

import json
from collections.abc import Iterable

from app.call import Headers, Passing, Reply
from app.engine_message import message
from app.errors import GatewayError, Kind

_READ_WHOLE = 65536  # bytes
_STREAMS = {"text/event-stream", "application/x-ndjson"}
_DOCUMENTS = {"", "application/json", "application/problem+json"}
_BROWSERS = ("access-control-", "cross-origin-")  # what pages may do is not for an engine to say
_LOADING = 503  # "up, but not ready": the caller may come back, so it passes as it is

# Dropped on the way back: those that speak of one connection (RFC 9110, 7.6.1), those the gateway
# sets itself, cookies (one session serves all callers), what tells browsers how to treat all that
# comes from the gateway's address, and the length and encoding of a body that is unpacked here.
_DROPPED = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade",
    "server", "date", "x-request-id", "set-cookie", "set-cookie2", "www-authenticate",
    "timing-allow-origin", "clear-site-data", "strict-transport-security", "alt-svc", "nel",
    "report-to", "reporting-endpoints", "origin-agent-cluster", "service-worker-allowed",
    "content-length", "content-encoding",
}


def judge(reply: Reply, passing: Passing) -> None:
    """Raise GatewayError where the engine failed and its answer may not pass.

    Blocks until the engine has said what is wrong with it, if something is.
    """
    if passing is Passing.ANYTHING or (passing is Passing.STATUSES and not reply.successful):
        return
    if reply.successful and not _is_page(reply):
        return
    if 400 <= reply.status < 500 or reply.status == _LOADING:
        return
    if not reply.successful and reply.status < 400:
        text = f"the engine answered {reply.status}, which the gateway does not follow"
        raise GatewayError(Kind.UPSTREAM_ERROR, text)
    said = message(reply.body)
    text = f"the engine answered {reply.status}" + (f": {said}" if said else " without a word")
    raise GatewayError(Kind.UPSTREAM_ERROR, text)


def arrives_in_pieces(reply: Reply) -> bool:
    """Whether the body is for whoever reads along; documents are passed on only when whole.

    A document that breaks off can still become an error. What is neither JSON nor text (speech,
    pictures) may be large or made while it is heard.
    """
    if not reply.successful:
        return False
    kind = _media_type(reply)
    return kind in _STREAMS or not (kind in _DOCUMENTS or kind.startswith("text/"))


def _is_page(reply: Reply) -> bool:
    """An HTML page: whatever listens there, it is not the API that was asked for."""
    return _media_type(reply) == "text/html"


def _media_type(reply: Reply) -> str:
    return reply.header("content-type").partition(";")[0].strip().lower()


def require_json(reply: Reply, passing: Passing) -> None:
    """Raise GatewayError for a whole reply that calls itself JSON and is none.

    An engine that ends in the midst of a document can still have framed it well.
    """
    claims = reply.successful and _media_type(reply) == "application/json"
    if claims and passing is not Passing.ANYTHING and not _is_json(reply.body):
        raise GatewayError(Kind.UPSTREAM_ERROR, "the engine's answer is no whole JSON document")


def _is_json(body: bytes) -> bool:
    """Whether a text can be a whole document; only a short one is read to be sure.

    Reading costs some µs per KB; a long document that is cut hardly ever ends like a whole one.
    """
    text = body.strip()
    if len(text) > _READ_WHOLE and text[:1] + text[-1:] in (b"{}", b"[]"):
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def passing(headers: Iterable[tuple[str, str]], unpacked: bool) -> Headers:
    """The headers that go back to the client, in their order; the body is ``unpacked`` or not."""
    pairs = [(name, value) for name, value in headers]
    dropped = _DROPPED if unpacked else _DROPPED - {"content-encoding"}
    named = {
        token.strip().lower()
        for name, value in pairs if name.lower() == "connection" for token in value.split(",")
    }
    return [
        (name, value) for name, value in pairs
        if (lower := name.lower()) not in dropped | named
        and not lower.startswith(_BROWSERS)
    ]
