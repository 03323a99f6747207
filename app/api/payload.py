"""The bodies that calls carry: the client's own bytes, and where in them the model is named."""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from app import jsontext
from app.errors import GatewayError, Kind

Raw = bytes | bytearray

_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))', re.IGNORECASE)
_NAME = re.compile(rb'^(?i:content-disposition):[^\r\n]*[;\s](?i:name)="?model"?[\s;\r]', re.M)
_MAX_CHOICES = 1024
_MAX_HEADERS = 16384  # bytes of one part's headers


@dataclass(frozen=True)
class JsonBody:
    """A JSON object: its bytes, and the dict that was parsed from them."""

    raw: Raw
    fields: dict[str, Any] = field(repr=False)
    content_type: str = "application/json"

    @property
    def model(self) -> str | None:
        """The field ``model``, where it is a text that is not blank."""
        found = self.fields.get("model")
        return found if isinstance(found, str) and found.strip() else None

    @property
    def choices(self) -> int:
        """How many answers are asked for in one reply."""
        found = self.fields.get("n")
        return found if isinstance(found, int) and 1 < found <= _MAX_CHOICES else 1

    @property
    def opening(self) -> str | None:
        """The messages up to the first that is no system message: they stay while it goes on."""
        messages = self.fields.get("messages")
        if not isinstance(messages, list) or not messages:
            return None
        own = (i for i, each in enumerate(messages) if not _is_of_system(each))
        opening = messages[:next(own, len(messages)) + 1]
        return json.dumps([self.fields.get("model"), opening], sort_keys=True)

    def for_model(self, name: str) -> "JsonBody":
        """This body with ``model`` set: the same bytes where it has that value already.

        Otherwise the dict is serialised again, its order and the value of every number kept.
        Raises GatewayError for what cannot be serialised.
        """
        if self.fields.get("model") == name:
            return self
        fields = {**self.fields, "model": name}
        return replace(self, raw=jsontext.encode(fields), fields=fields)


@dataclass(frozen=True)
class FormBody:
    """A multipart/form-data body (RFC 7578); ``span`` is where the value of ``model`` stands."""

    raw: Raw = field(repr=False)
    content_type: str
    span: tuple[int, int] | None
    choices = 1
    opening = None

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


def _is_of_system(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") in ("system", "developer")


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
