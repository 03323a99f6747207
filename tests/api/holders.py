"""Keys for tests: the key of a holder is its name with a dash and "key" behind it."""

from __future__ import annotations

from typing import Any

from app.keys import hash_of
from app.settings import KeySettings

Headers = dict[str, str]


def key_of(name: str) -> str:
    """The key of that holder."""
    return f"{name}-key"


def holder(name: str, **entry: Any) -> KeySettings:
    """The entry that knows the key of that holder."""
    return KeySettings(name, hash_of(key_of(name)), **entry)


def bearer(name: str) -> Headers:
    """The header by which that holder is known."""
    return {"Authorization": f"Bearer {key_of(name)}"}
