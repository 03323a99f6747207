"""A strict reader of event streams (WHATWG HTML, section 9.2.6), working on the bytes of a body."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tests.fakes.strict_json import strict_json

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event as a client gets to see it."""

    name: str
    data: str

    def json(self) -> Any:
        """The data as strict JSON; None where it is none."""
        try:
            return strict_json(self.data.encode())
        except ValueError:
            return None


def read_events(body: bytes) -> tuple[list[Event], bytes]:
    """The events of a whole body, and the bytes after the last one that are no event."""
    events: list[Event] = []
    name, data, begin = b"", list[bytes](), 0
    for line, end in _lines(body.removeprefix(_BOM)):
        if not line:
            if data:
                events.append(Event(_text(name) or "message", _text(b"\n".join(data))))
            name, data, begin = b"", [], end
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return events, body.removeprefix(_BOM)[begin:]


def _lines(body: bytes) -> list[tuple[bytes, int]]:
    """Each line that is ended, with the place where the next begins."""
    lines, begin = [], 0
    for end in _LINE_END.finditer(body):
        lines.append((body[begin:end.start()], end.end()))
        begin = end.end()
    return lines


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
