"""One log line for each request: JSON for programs, or text for people."""

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from json.encoder import encode_basestring_ascii

from app.record import Record
from app.telemetry.log import timestamp

NAME = "app.access"
# In the order in which a line has them; docs/operations.md says what each is.
FIELDS = (
    "time", "level", "logger", "request_id", "principal", "method", "route", "model", "engine",
    "status", "closed_by", "error", "bytes_out", "queue_ms", "load_ms", "first_byte_ms", "total_ms",
    "prompt_tokens", "completion_tokens",
)
_QUIET = {"/health"}  # asked all day by whoever watches
_LONGEST = 200  # characters of a value
_BARE = re.compile(r"[\w.:/@+<>-]+", re.ASCII)  # needs no quotes in a line of text
_FIRST = ("time", "level", "logger", "method", "route", "status")  # of such a line, without names
_LINE = "{" + ",".join(f'"{name}":%s' for name in FIELDS) + "}\n"


def to_standard_output(line: bytes) -> None:
    """Write a line with one call of the kernel, so that lines of several threads do not mix."""
    with suppress(OSError):  # nobody reads any more, or the disk is full: requests go on
        os.write(1, line)


class AccessLog:
    """Writes the lines. Safe to use from many threads; has no lock of its own."""

    def __init__(self, form: str, write: Callable[[bytes], None] = to_standard_output) -> None:
        """``form`` is json or text."""
        self._made = as_json if form == "json" else as_text
        self._write = write

    def note(self, record: Record) -> None:
        """Write the line of a request that has ended."""
        if record.route not in _QUIET:
            self._write(self._made(record, time.time()).encode("ascii"))


def as_json(record: Record, now: float) -> str:
    """The line as one JSON object of ASCII characters; what is not known is null."""
    return _LINE % (
        f'"{timestamp(now)}"', '"INFO"', f'"{NAME}"', _quoted(record.request_id),
        _quoted(record.principal), _quoted(record.method), _quoted(record.route),
        _quoted(record.model), _quoted(record.engine), record.status,
        f'"{record.closed_by.value}"', _quoted(record.error), record.bytes_out,
        _milliseconds(record.queue), _milliseconds(record.load), _milliseconds(record.first_byte),
        _milliseconds(record.total), _number(record.prompt_tokens),
        _number(record.completion_tokens),
    )


def as_text(record: Record, now: float) -> str:
    """The same for people, without what is not known."""
    fields = json.loads(as_json(record, now))
    said = [f"{name}={_shown(value)}" for name, value in fields.items()
            if name not in _FIRST and value is not None]
    first = [_shown(fields[name] or "-") for name in _FIRST]
    return " ".join([*first, *said]) + "\n"


def _shown(value: str | float) -> str:
    if isinstance(value, str) and not _BARE.fullmatch(value):
        return encode_basestring_ascii(value)
    return str(value)


def _quoted(text: str | None) -> str:
    if text is None:
        return "null"
    found = encode_basestring_ascii(text[:_LONGEST])
    return found if found.isprintable() else found.replace("\x7f", "\\u007f")


def _milliseconds(seconds: float | None) -> str:
    return "null" if seconds is None else "%.1f" % (1000 * seconds)


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)
