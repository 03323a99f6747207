"""One log line for each request: JSON for programs, or text for people."""

import json
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
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
_LINE = "{" + ",".join((
    '"time":"%s","level":"INFO","logger":"app.access","request_id":%s,"principal":%s,"method":%s',
    '"route":%s,"model":%s,"engine":%s,"status":%d,"closed_by":"%s","error":%s,"bytes_out":%d',
    '"queue_ms":%.1f,"load_ms":%.1f,"first_byte_ms":%s,"total_ms":%.1f',
    '"prompt_tokens":%s,"completion_tokens":%s')) + "}\n"


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
    first_byte, prompt, completion = (
        record.first_byte, record.prompt_tokens, record.completion_tokens)
    model = record.model and record.model[:_LONGEST]  # before it is kept, long as it may be
    return _LINE % (
        timestamp(now), _quoted(record.request_id), _known(record.principal),
        _known(record.method), _known(record.route), _known(model), _known(record.engine),
        record.status, record.closed_by.value, _known(record.error), record.bytes_out,
        1000 * record.queue, 1000 * record.load,
        "null" if first_byte is None else "%.1f" % (1000 * first_byte), 1000 * record.total,
        "null" if prompt is None else prompt, "null" if completion is None else completion,
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


def _quoted(text: str) -> str:
    found = encode_basestring_ascii(text[:_LONGEST])
    return found if found.isprintable() else found.replace("\x7f", "\\u007f")


@lru_cache(maxsize=1024)
def _known(text: str | None) -> str:
    """As JSON; most are the same again and again."""
    return "null" if text is None else _quoted(text)
