"""Models in and out of the registry, as far as Ollama's clients can be told that here."""

from collections.abc import Iterator
from typing import Any

from flask import Response

from app import jsontext
from app.api.http import json_response, services
from app.api.ollama.reading import read_fields
from app.api.ollama.refusal import Refusal, invalid
from app.api.ollama.request.fields import flag, text
from app.errors import GatewayError

_MISSING = "pull model manifest: file does not exist"
_NOT_HERE = "this gateway does not change its models: use the program that fills its registry"


def pull() -> Response:
    """A model that is there is there at once; nothing else can be pulled."""
    fields = read_fields()
    name = text(fields.get("model"), "model") or text(fields.get("name"), "name")
    if not name.strip():
        raise invalid("invalid model name")
    present = _is_present(name)
    if flag(fields.get("stream"), "stream", True):
        return Response(_progress(present), content_type="application/x-ndjson")
    if not present:
        raise Refusal(500, _MISSING)
    return json_response({"status": "success"})


def refuse(**_: Any) -> Response:
    """What changes models is not offered."""
    raise Refusal(501, _NOT_HERE)


def _is_present(name: str) -> bool:
    try:
        return bool(services().entry(name))
    except GatewayError:
        return False


def _progress(present: bool) -> Iterator[bytes]:
    """The events of a pull; its failure is one of them, as in Ollama."""
    yield jsontext.encode({"status": "pulling manifest"}) + b"\n"
    end = {"status": "success"} if present else {"error": _MISSING}
    yield jsontext.encode(end) + b"\n"
