"""Who may do what: keys, known by their hashes, and the principals that hold them."""

import hmac
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from hashlib import sha256

from app.call import Priority
from app.settings import KeySettings

_PREFIX = "loop-"  # no hex digits, so that a key is never taken for the hash of one
_RANDOM = 32  # bytes

Allows = Callable[[str], bool]


class Scope(Enum):
    """What a key may be good for."""

    INFER = "infer"      # models: lists and calls
    ADMIN = "admin"      # engines and the registry: whatever changes something for others too
    METRICS = "metrics"  # numbers of what goes on


@dataclass(frozen=True)
class Principal:
    """Who is calling, and what that one may do.

    ``allows`` is whether a model may be used, by the registry's spelling of its name. ``rate`` and
    ``concurrency`` are None where there is no limit.
    """

    name: str
    scopes: frozenset[Scope] = frozenset()
    allows: Allows = field(default=lambda model: False, repr=False)
    every_model: bool = False
    max_priority: Priority = Priority.HIGH
    rate: str | None = None
    concurrency: int | None = None


# Whoever calls a gateway that has no keys, and whoever has given none to one that has.
ANYONE = Principal("", frozenset(Scope), lambda model: True, every_model=True)
NOBODY = Principal("")


@dataclass(frozen=True)
class _Key:
    digest: bytes = field(repr=False)
    expires: datetime | None
    principal: Principal


class KeyRing:
    """All keys. Safe to use from many threads: nothing of it changes."""

    def __init__(
        self, keys: Iterable[KeySettings], matching: Callable[[tuple[str, ...]], Allows]
    ) -> None:
        """``matching`` makes of globs what says whether one of them fits a model's name."""
        self._keys = [
            _Key(bytes.fromhex(key.sha256), key.expires, _principal(key, matching(key.models)))
            for key in keys
        ]

    def __bool__(self) -> bool:
        return bool(self._keys)

    def holder(self, presented: bytes, now: datetime) -> Principal | None:
        """Who has this key; None for a key that is not known or past its time.

        Every key is compared, so that the time it takes does not tell which one it was.
        """
        digest = sha256(presented).digest()
        found: _Key | None = None
        for key in self._keys:
            if hmac.compare_digest(key.digest, digest):
                found = key
        if found is None or (found.expires is not None and now >= found.expires):
            return None
        return found.principal


def new_key() -> str:
    """A key that nobody can guess: 256 random bits, as printable ASCII."""
    return _PREFIX + secrets.token_urlsafe(_RANDOM)


def hash_of(key: str) -> str:
    """What the configuration has of a key: the hex digits of the SHA-256 of its UTF-8 bytes."""
    return sha256(key.encode("utf-8")).hexdigest()


def _principal(key: KeySettings, allows: Allows) -> Principal:
    return Principal(
        key.name,
        frozenset(map(Scope, key.scopes)),
        allows,
        "*" in key.models,
        Priority[key.max_priority],
        key.rate,
        key.concurrency,
    )
