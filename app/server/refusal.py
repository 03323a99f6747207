"""What is said to a request that is no valid HTTP, or failed outside the application."""

import re

from gunicorn.http.errors import (
    ExpectationFailed, LimitRequestHeaders, LimitRequestLine, ParseException,
    UnsupportedTransferCoding,
)

from app import jsontext
from app.api.shapes import Fault, shape_of, told
from app.record import Record

_STATUS: list[tuple[type[Exception], str]] = [
    (LimitRequestLine, "414 URI Too Long"),
    (LimitRequestHeaders, "431 Request Header Fields Too Large"),
    (ExpectationFailed, "417 Expectation Failed"),
    (UnsupportedTransferCoding, "501 Not Implemented"),
    (ParseException, "400 Bad Request"),
]
_FAILED = "500 Internal Server Error"


def status_of(error: BaseException) -> str:
    """Code and phrase of the answer; "" where it is not the request that is wrong."""
    return next((text for kind, text in _STATUS if isinstance(error, kind)), "")


def reason(error: BaseException) -> str:
    """What is wrong with a request, in words; not gunicorn's own, which repeat a line of it.

    A key may stand in that line.
    """
    words = re.findall("[A-Z]+(?![a-z])|[A-Z][a-z]+", type(error).__name__)
    return " ".join(words).lower()


def answer(error: BaseException, path: str) -> bytes:
    """The whole response, in the shape of the path's API; of a head with no path, OpenAI's."""
    status, shape = status_of(error), shape_of(path)
    if status:
        message = f"the request is not valid HTTP: {reason(error)}"
        fault = Fault(int(status[:3]), message, "invalid_request_error", None)
    else:
        fault = Fault(500, "the gateway failed", "server_error", "internal_error")
    body = jsontext.encode(told(fault, shape))
    head = (
        f"HTTP/1.1 {status or _FAILED}\r\nConnection: close\r\nContent-Type: {shape.content_type}"
        f"\r\nServer-Timing: {Record().server_timing()}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body
