"""Readers of the values that say who may do what: of keys, hosts and origins."""

import ipaddress
import re
from datetime import date, datetime, time, timedelta, timezone
from typing import Any
from urllib.parse import urlsplit

from app import hosts, origins
from app.config import values
from app.config.values import Rejected

_NAME = 64  # characters
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_RATE = re.compile(r"([0-9]{1,9})/(second|minute|hour|day)")
_SCOPES = ("infer", "admin", "metrics")
_PRIORITIES = ("HIGH", "NORMAL", "LOW")
_STORAGES = ("memory", "redis", "rediss")
_NO_HASH = (
    "must be the SHA-256 of a key in 64 hex digits, never the key itself; "
    "python -m app.cli keys new NAME makes a key and its entry"
)


def name(value: Any) -> str:
    """What its holder is called in logs: at most 64 printable characters."""
    found = values.text(value)
    if len(found) <= _NAME and found.isprintable() and found == found.strip():
        return found
    raise Rejected(f"must be at most {_NAME} printable characters without spaces around them")


def sha256(value: Any) -> str:
    """The hash of a key as 64 hex digits, given in small letters."""
    if isinstance(value, str) and _SHA256.fullmatch(value):
        return value.lower()
    raise Rejected(_NO_HASH)


def scopes(value: Any) -> tuple[str, ...]:
    """A list of scopes, one or more."""
    found = values.texts(value)
    if found and set(found) <= set(_SCOPES):
        return found
    raise Rejected(f"must be a list of at least one of {', '.join(_SCOPES)}")


def rate(value: Any) -> str:
    """How many requests in a unit of time, such as 60/minute."""
    match = _RATE.fullmatch(value.replace(" ", "")) if isinstance(value, str) else None
    if match and int(match[1]) > 0:
        return match[0]
    raise Rejected("must be a count and a second, minute, hour or day, such as 60/minute")


def priority(value: Any) -> str:
    """One of the priorities, in any case."""
    if isinstance(value, str) and value.upper() in _PRIORITIES:
        return value.upper()
    raise Rejected(f"must be one of {', '.join(_PRIORITIES)}")


def moment(value: Any) -> datetime:
    """A time with its zone (UTC where it names none); a date is the end of that day in UTC."""
    found = _from_text(value) if isinstance(value, str) else value
    try:
        if isinstance(found, datetime):
            return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
        if isinstance(found, date):
            return datetime.combine(found + timedelta(days=1), time(), timezone.utc)
    except OverflowError:
        return datetime.max.replace(tzinfo=timezone.utc)
    raise Rejected("must be a date such as 2030-12-31 or a time such as 2030-12-31T18:00:00Z")


def hosts_of(value: Any) -> tuple[str, ...]:
    """A list of host names without port, in small letters; "*.name" is all below a name."""
    found = tuple(each.lower() for each in values.texts(value))
    for each in found:
        if each != hosts.ANY and not hosts.PATTERN.fullmatch(each) and not _is_address(each):
            raise Rejected('must be names without port, such as gw.example.org, *.example.org, "*"')
    return tuple(each.strip("[]") for each in found)


def origins_of(value: Any) -> tuple[str, ...]:
    """A list of origins: a scheme, a host and maybe a port, nothing behind them."""
    found = tuple(each.removesuffix("/") for each in values.texts(value))
    for each in found:
        try:
            _ = each == origins.ANY or origins.regex(each)
        except ValueError:
            raise Rejected(
                "must be origins, such as https://chat.example.org, http://*.example.org:*, "
                'chrome-extension://*, or "*" for all'
            ) from None
    return found


def storage(value: Any) -> str:
    """Where requests are counted: memory:// or the address of a Redis server."""
    try:
        parts = urlsplit(values.text(value))
        good = parts.scheme in _STORAGES and (parts.hostname or parts.scheme == "memory")
        good = good and parts.port != 0
    except ValueError:  # a port that is no number
        good = False
    if good:
        return str(value)
    raise Rejected("must be memory:// or the address of a Redis server, such as redis://host:6379")


def _from_text(text: str) -> date | None:
    """The date or time that a text is, as Python 3.10 reads ISO 8601 too; None for neither."""
    try:
        if len(text) == len("2030-12-31"):
            return date.fromisoformat(text)
        return datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
    except ValueError:
        return None


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        return False
