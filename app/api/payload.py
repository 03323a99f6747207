"""The bodies that calls carry: the client's own bytes, and where in them the model is named."""

import re
from dataclasses import dataclass, field
from typing import Any

from app import jsontext
from app.api.extensions import NONE, Extensions
from app.api.opening import opening
from app.errors import GatewayError, Kind

Raw = bytes | bytearray

_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))', re.IGNORECASE)
_NAME = re.compile(rb'^(?i:content-disposition):[^\r\n]*[;\s](?i:name)="?model"?[\s;\r]', re.M)
# How many answers are wanted: llama-server's name for it, which counts there before OpenAI's
# (tools/server/server-schema.cpp).
_CHOICES = ("n_cmpl", "n")
_MAX_PARTS = 1024
_MAX_HEADERS = 16384  # bytes of one part's headers


class JsonBody:
    """A JSON object: its bytes, and the dict that was parsed from them. Neither is ever changed."""

    content_type = "application/json"

    def __init__(self, raw: Raw | None, fields: dict[str, Any],
                 extensions: Extensions = NONE, path: str = "") -> None:
        """``raw`` is None where the bytes have still to be made of ``fields``.

        ``extensions`` is what stood in the body beside them. ``path`` is where it was sent, which
        can make a difference to what the fields mean.
        """
        self._raw = raw
        self.fields = fields
        self.extensions = extensions
        self.path = path

    @property
    def raw(self) -> Raw:
        """The bytes, serialised at most once: the order of ``fields``, every number's value."""
        if self._raw is None:
            self._raw = jsontext.encode(self.fields)
        return self._raw

    @property
    def model(self) -> str | None:
        """The field ``model``, where it is a text that is not blank."""
        found = self.fields.get("model")
        return found if isinstance(found, str) and found.strip() else None

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of Call that stand in the body."""
        return {"choices": self._choices, "priority": self.extensions.priority,
                "session": self.extensions.session}

    @property
    def _choices(self) -> dict[str, Any]:
        return {name: self.fields[name] for name in _CHOICES if self.fields.get(name) is not None}

    @property
    def parts(self) -> int:
        """How many answers a stream in reply to it holds."""
        found = next(iter(self._choices.values()), None)
        return found if isinstance(found, int) and 1 < found <= _MAX_PARTS else 1

    def with_field(self, name: str, value: Any) -> "JsonBody":
        """This body with one field set."""
        return JsonBody(None, {**self.fields, name: value}, self.extensions, self.path)

    @property
    def opening(self) -> str | None:
        """What it begins with and keeps while the conversation goes on; None: not known."""
        return opening(self.path, self.fields)

    def for_model(self, name: str) -> "JsonBody":
        """This body with ``model`` set: the same bytes where it has that value already."""
        return self if self.fields.get("model") == name else self.with_field("model", name)


@dataclass(frozen=True)
class FormBody:
    """A multipart/form-data body (RFC 7578); ``span`` is where the value of ``model`` stands."""

    raw: Raw = field(repr=False)
    content_type: str
    span: tuple[int, int] | None
    opening = None
    parts = 1

    @property
    def facts(self) -> dict[str, Any]:
        """None of the fields of Call stand in a form."""
        return {}

    @property
    def model(self) -> str | None:
        """The value of the field ``model``, where there is one that is not blank."""
        if self.span is None:
            return None
        found = bytes(self.raw[slice(*self.span)]).decode("utf-8", "replace")
        return found if found.strip() else None

    def for_model(self, name: str) -> "FormBody":
        """This body with another value of ``model``; a form without the field stays as it is."""
        if self.span is None or self.model == name:
            return self
        start, end = self.span
        value = name.encode("utf-8", "backslashreplace")
        raw = b"".join((memoryview(self.raw)[:start], value, memoryview(self.raw)[end:]))
        return FormBody(raw, self.content_type, (start, start + len(value)))


@dataclass(frozen=True)
class OpaqueBody:
    """Bytes that name no model, or no body at all."""

    raw: Raw = field(default=b"", repr=False)
    content_type: str = ""
    model: str | None = None
    opening = None

    def for_model(self, name: str) -> "OpaqueBody":
        """Itself: there is nothing in it that could change."""
        return self


def form(raw: Raw, content_type: str) -> FormBody:
    """The form in ``raw``; files in it are passed over, not copied. Raises GatewayError."""
    match = _BOUNDARY.search(content_type)
    if not match:
        raise GatewayError(Kind.INVALID_BODY, "the multipart request names no boundary")
    delimiter = b"--" + (match[1] or match[2]).encode("latin-1", "replace")
    return FormBody(raw, content_type, _model_span(raw, delimiter))


def _model_span(raw: Raw, delimiter: bytes) -> tuple[int, int] | None:
    """Where the value of the part named ``model`` begins and ends; two such parts are refused.

    A gateway that routed by one and an engine that reads the other would see two requests.
    """
    spans = []
    part = 0 if raw.startswith(delimiter) else raw.find(b"\r\n" + delimiter) + 2
    while part >= 2 or (part == 0 and raw.startswith(delimiter)):
        headers = part + len(delimiter)
        value = raw.find(b"\r\n\r\n", headers, headers + _MAX_HEADERS)
        end = raw.find(b"\r\n" + delimiter, headers)
        if end < 0:
            break
        if 0 <= value < end and _NAME.search(bytes(raw[headers + 2:value + 2])):
            spans.append((value + 4, end))
        part = end + 2
    if len(spans) > 1:
        raise GatewayError(Kind.INVALID_BODY, "the form field 'model' is repeated", param="model")
    return spans[0] if spans else None
