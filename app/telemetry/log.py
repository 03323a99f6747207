"""The gateway's own log lines: to standard error, one line each, as JSON or as text for people."""

import json
import logging
import sys
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TextIO

_LONGEST = 8192  # characters of a message

Fields = dict[str, Any]

if TYPE_CHECKING:
    _StreamHandler = logging.StreamHandler[TextIO]
else:
    _StreamHandler = logging.StreamHandler  # takes no parameter before Python 3.11


def configure(form: str, stream: TextIO = sys.stderr) -> None:
    """Send what the gateway and its libraries log to ``stream``, in ``form`` (json or text).

    A second call changes nothing.
    """
    root = logging.getLogger()
    if not any(isinstance(handler, _Handler) for handler in root.handlers):
        root.addHandler(handler_for(form, stream))
        logging.getLogger("app").setLevel(logging.INFO)


def handler_for(form: str, stream: TextIO) -> logging.Handler:
    """What writes lines of this form to the stream."""
    handler = _Handler(stream)
    handler.setFormatter(formatter(form))
    return handler


def formatter(form: str) -> logging.Formatter:
    """What makes lines of this form: json or text."""
    return _Json() if form == "json" else _Text()


def encoded(fields: Fields) -> str:
    """The fields as one JSON object that holds no control character, and no other than ASCII."""
    return _ENCODE(fields).replace("\x7f", "\\u007f")


def timestamp(seconds: float) -> str:
    """A time since the epoch as RFC 3339 in UTC, with milliseconds."""
    whole = int(seconds)
    return f"{_second(whole)}.{int(1000 * (seconds - whole)):03d}Z"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")


def plain(text: str) -> str:
    """The text without a character that a terminal or a reader of lines could act on."""
    return text if text.isprintable() else "".join(
        c if c.isprintable() else repr(c)[1:-1] for c in text)


class _Handler(_StreamHandler):
    """A handler that loses what cannot be written: a full disk must not end a request."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": timestamp(record.created), "level": record.levelname, "logger": record.name,
            "message": record.getMessage()[:_LONGEST],
        }
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return encoded(fields)


class _Text(logging.Formatter):
    """One line per record, a stack trace apart."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return timestamp(record.created)

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = plain(record.message[:_LONGEST])
        return super().formatMessage(record)


_ENCODE = json.JSONEncoder(separators=(",", ":"), default=str).encode
