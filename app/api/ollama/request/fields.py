"""Single fields of a request: each reader takes a value and its path, and raises Refusal.

``null`` counts as absent everywhere, as it does for Go's decoder.
"""

from typing import Any

from app.api.ollama.refusal import invalid


def text(value: Any, path: str) -> str:
    """A text, "" where there is none.

    Half a surrogate pair, which engines refuse as broken JSON, becomes U+FFFD as in Ollama.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid(f"{path} must be a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


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


def lowered(found: dict[str, Any]) -> dict[str, Any]:
    """The object with its keys in lower case and without nulls: Go matches keys in any case."""
    return {key.lower(): value for key, value in found.items() if value is not None}
