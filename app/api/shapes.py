"""What an error looks like in the API that a path is of; pure."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from werkzeug.http import HTTP_STATUS_CODES

_PROBLEMS = ("/engines", "/metrics", "/openapi.json")
# status → Anthropic type (docs.anthropic.com, API errors)
_ANTHROPIC = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
    404: "not_found_error", 405: "invalid_request_error", 408: "invalid_request_error",
    413: "request_too_large", 414: "invalid_request_error", 415: "invalid_request_error",
    417: "invalid_request_error", 429: "rate_limit_error", 431: "invalid_request_error",
    501: "invalid_request_error", 503: "overloaded_error", 504: "timeout_error",
}


class Shape(Enum):
    """The ways in which errors are told."""

    OPENAI = "openai"
    OLLAMA = "ollama"
    ANTHROPIC = "anthropic"
    PROBLEM = "problem"  # RFC 9457

    @property
    def content_type(self) -> str:
        """The media type of an error."""
        return "application/problem+json" if self is Shape.PROBLEM else "application/json"


@dataclass(frozen=True)
class Fault:
    """What there is to tell; ``type``, ``code`` and ``param`` are OpenAI's words."""

    status: int
    message: str
    type: str
    code: str | None
    param: str | None = None


def shape_of(path: str) -> Shape:
    """The shape of the errors of a path; OpenAI's where nothing else is known."""
    if _within(path, "/api"):
        return Shape.OLLAMA
    if _within(path, "/v1/messages"):
        return Shape.ANTHROPIC
    return Shape.PROBLEM if any(_within(path, own) for own in _PROBLEMS) else Shape.OPENAI


def told(fault: Fault, shape: Shape) -> dict[str, Any]:
    """The object that is the whole error."""
    if shape is Shape.OLLAMA:
        return {"error": fault.message}
    if shape is Shape.ANTHROPIC:
        kind = _ANTHROPIC.get(fault.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": fault.message}}
    if shape is Shape.PROBLEM:
        return _problem(fault)
    return {"error": openai(fault)}


def openai(fault: Fault) -> dict[str, Any]:
    """The object that OpenAI's clients read."""
    return {"message": fault.message, "type": fault.type, "param": fault.param, "code": fault.code}


def phrase(status: int) -> str:
    """The words that go with a status."""
    return HTTP_STATUS_CODES.get(status, "Client Closed Request")


def _problem(fault: Fault) -> dict[str, Any]:
    """RFC 9457, 3.1 and 4.2.1: there is no more to say of the type than the status does."""
    return {
        "type": "about:blank", "title": phrase(fault.status), "status": fault.status,
        "detail": fault.message, "code": fault.code, "param": fault.param,
    }


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")
