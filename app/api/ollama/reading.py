"""The fields of an Ollama request: keys in any case, nulls as if they were not there."""

from typing import Any

from app.api.body import read_aside
from app.api.ollama.request.fields import lowered
from app.api.place import take_place
from app.api.view import View

_EMPTY = "missing request body"
_UNCHECKED = View()  # the fields are checked where they are used, in Ollama's words


def read_call() -> dict[str, Any]:
    """The fields of a call for an engine, for which it takes a place; else as ``read_fields``."""
    take_place()
    return read_fields()


def read_fields() -> dict[str, Any]:
    """The fields of a request that needs no engine. Blocks and raises as ``read_aside``."""
    return lowered(read_aside(_UNCHECKED, _EMPTY).fields)
