"""How an answer fails: what an engine says of it, and where the client gets to see it."""

from collections.abc import Iterator
from typing import Any

from app.api.ollama.refusal import Refusal
from app.errors import GatewayError, Kind

Failure = GatewayError | Refusal
_KEY_REFUSED = (401, 403)  # of the gateway's key, not of the client's: clients would ask for theirs


def reported(error: Any) -> Failure:
    """The failure behind an engine's ``error`` object or text, in the engine's own words."""
    text = error.get("message") if isinstance(error, dict) else error
    if not isinstance(text, str) or not text:
        text = "the engine reported an error without a word"
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int) and 400 <= code < 500 and code not in _KEY_REFUSED:
        return Refusal(code, text)
    return GatewayError(Kind.UPSTREAM_ERROR, text)


def unreadable(what: str) -> GatewayError:
    """The failure of an engine that answers what nobody can read."""
    return GatewayError(Kind.UPSTREAM_ERROR, f"the engine sent {what}")


class FailureLine(dict[str, Any]):
    """The last line of an answer that broke off: ``{"error": text}``, and its cause."""

    def __init__(self, cause: Failure) -> None:
        super().__init__(error=cause.message if isinstance(cause, GatewayError) else cause.text)
        self.cause = cause


def contained(lines: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The lines, and a FailureLine where they break off; raises what comes before the first."""
    begun = False
    try:
        for line in lines:
            begun = True
            yield line
    except (GatewayError, Refusal) as failure:
        if not begun:
            raise
        yield FailureLine(failure)
