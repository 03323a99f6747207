"""Single fields of a request: each reader takes a value and its path, and raises Refusal.

``null`` counts as absent everywhere, as it does for Go's decoder.
"""

import re
from typing import Any

from app.api.ollama.refusal import invalid

_HALF = re.compile("[\ud800-\udfff]")  # what is left of the surrogates once pairs are read


def text(value: Any, path: str) -> str:
    """A text, "" where there is none."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid(f"{path} must be a text")
    return value


def whole(value: Any, path: str) -> int:
    """A whole number, 0 where there is none; 5.0 is one too, as JSON has one kind of number."""
    if value is None:
        return 0
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value != int(value):
        raise invalid(f"{path} must be a whole number")
    return int(value)


def flag(value: Any, path: str, default: bool = False) -> bool:
    """true or false."""
    if value is None:
        return default
    if not isinstance(value, bool):
        raise invalid(f"{path} must be true or false")
    return value


def items(value: Any, path: str) -> list[Any]:
    """A list of anything, empty where there is none."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid(f"{path} must be a list")
    return value


def mapping(value: Any, path: str) -> dict[str, Any]:
    """An object, empty where there is none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid(f"{path} must be an object")
    return value


def objects(value: Any, path: str) -> list[dict[str, Any]]:
    """A list of objects, empty where there is none."""
    found = items(value, path)
    for i, item in enumerate(found):
        if not isinstance(item, dict):
            raise invalid(f"{path}[{i}] must be an object")
    return found


def mended(value: Any) -> Any:
    """``value`` with U+FFFD for each half of a surrogate pair in its texts and keys, as in Ollama.

    JSON can write such halves, but no UTF-8 can, and engines take a text with one for broken JSON.
    """
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [mended(each) for each in value]
    if isinstance(value, dict):
        return {mended(key): mended(each) for key, each in value.items()}
    return value


def lowered(found: dict[str, Any]) -> dict[str, Any]:
    """The object with its keys in lower case and without nulls: Go matches keys in any case."""
    return {key.lower(): value for key, value in found.items() if value is not None}
