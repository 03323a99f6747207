"""What an engine says is wrong, found in whatever it answers."""

import re

from app import jsontext

_EXCERPT = 200  # characters of an engine's own text in an error message
_MARKUP = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)


def message(body: bytes) -> str:
    """The ``error.message`` of an engine's body, else its first characters without markup."""
    try:
        found = jsontext.decode(body)
    except jsontext.JsonError:
        return _excerpt(_MARKUP.sub(" ", body[:20000].decode("utf-8", "replace")))
    error = found.get("error") if isinstance(found, dict) else None
    said = error.get("message") if isinstance(error, dict) else error
    return said if isinstance(said, str) else _excerpt(body.decode("utf-8", "replace"))


def _excerpt(text: str) -> str:
    return " ".join(text.split())[:_EXCERPT]
