"""The fields of an Ollama request: keys in any case, nulls as if they were not there."""

import re
from typing import Any

from marshmallow import Schema

from app.api.body import read_aside
from app.api.ollama.request.fields import lowered, mended
from app.api.place import take_place
from app.api.view import View

_EMPTY = "missing request body"
_UNCHECKED = View()  # the fields are checked where they are used, in Ollama's words
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # only as an escape can one be in UTF-8


def read_call() -> dict[str, Any]:
    """The fields of a call for an engine, for which it takes a place; else as ``read_fields``."""
    take_place()
    return read_fields()


def read_fields(view: Schema = _UNCHECKED) -> dict[str, Any]:
    """The fields of a request that needs no engine, checked by ``view``, every text in Unicode.

    Blocks and raises as ``read_aside``.
    """
    body = read_aside(view, _EMPTY)
    return lowered(mended(body.fields) if _SURROGATE.search(body.raw) else body.fields)
