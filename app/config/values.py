"""Readers of single values: YAML in, a typed value out, or Rejected with rule and remedy."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from app.settings import BUILTIN

Reader = Callable[[Any], Any]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){1,3}")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]i?B|B)?")
_DIGITS = 20  # of a number that can still mean something
_BYTES = {"": 1, "B": 1} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("KMGT", start=1)
    for unit, base in (("B", 1000), ("iB", 1024))
}


class Rejected(ValueError):
    """The value breaks a rule; the message states the rule and what to write instead."""


def text(value: Any) -> str:
    """A text that is not blank."""
    if isinstance(value, str) and value.strip():
        return value
    raise Rejected("must be a text that is not blank; put it in quotes if it looks like a number")


def version(value: Any) -> str:
    """A release as numbers with dots between them, as clients compare it number by number."""
    if isinstance(value, str) and _VERSION.fullmatch(value):
        return value
    raise Rejected('must be numbers with dots between them, in quotes, such as "0.33.0"')


def secret(value: Any) -> str | None:
    """A text that can stand in an HTTP header; an empty one means none."""
    if isinstance(value, str) and value.isprintable() and value.isascii() and " " not in value:
        return value or None
    raise Rejected("must be a text of printable ASCII characters without spaces")


def boolean(value: Any) -> bool:
    """true or false, also as a text, as a variable gives it."""
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise Rejected("must be true or false")


def _integer(low: int, high: int, value: Any) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < _DIGITS:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise Rejected(f"must be a whole number from {low} to {high}")


def integer(low: int, high: int) -> Reader:
    """A reader of whole numbers from ``low`` to ``high``."""
    return partial(_integer, low, high)


def duration(value: Any) -> float:
    """Seconds, from a text such as 300ms, 2s, 5m, 1h or 1h30m; more than zero."""
    parts = _DURATION.findall(value) if isinstance(value, str) else []
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if parts and "".join(n + u for n, u in parts) == value and 0 < seconds <= 366 * 86400:
        return seconds
    raise Rejected("must be a duration above zero with its unit, such as 300ms, 2s, 5m or 1h")


def size(value: Any) -> int:
    """Bytes, from a whole number or a text such as 512MiB or 16GiB; more than zero."""
    if isinstance(value, int) and abs(value) < 10**_DIGITS:
        value = str(value)  # of longer ones Python makes no text
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    match = match if match and len(match[1]) < _DIGITS else None
    number = int(float(match[1]) * _BYTES[match[2] or ""]) if match else 0
    if number > 0:
        return number
    raise Rejected("must be a size of more than zero, such as 512MiB or 16GiB")


def path(value: Any) -> Path:
    """A path, ``~`` expanded, made absolute against the working directory."""
    if "\0" in text(value):
        raise Rejected("must be a path")
    try:
        return Path(value).expanduser().absolute()
    except RuntimeError:
        raise Rejected("has no home directory to put for ~; write the whole path") from None


def url(value: Any) -> str:
    """An http or https address without query, fragment or trailing slash."""
    try:
        parts = urlsplit(text(value).strip())
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        good = good and value.isprintable() and " " not in value.strip()
    except ValueError:  # a port that is no number, a broken IPv6 address
        good = False
    if not good or parts.query or parts.fragment or parts.username is not None:
        raise Rejected("must be the address of an engine, such as http://127.0.0.1:8080")
    return parts.geturl().rstrip("/")


def one_of(*names: str) -> Reader:
    """A reader of one of the given words."""

    def read(value: Any) -> str:
        if value in names:
            return str(value)
        raise Rejected(f"must be one of {', '.join(names)}")

    return read


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts that are not blank."""
    if isinstance(value, list):
        return tuple(text(item) for item in value)
    raise Rejected("must be a list of texts, such as [a, b]")


def some_texts(value: Any) -> tuple[str, ...]:
    """A list of at least one text."""
    return texts(value) or _reject("must name at least one")


def mapping(value: Any) -> dict[str, str]:
    """A mapping of texts to texts."""
    if isinstance(value, dict):
        return {text(key): text(item) for key, item in value.items()}
    raise Rejected("must be a mapping of names to names, such as {gpt-4o: org/name:tag}")


def optional(reader: Reader) -> Reader:
    """A reader that also takes null, for none."""
    return lambda value: None if value is None else reader(value)


def items(value: Any) -> list[Any]:
    """A list of anything; null means an empty one."""
    if value is None or isinstance(value, list):
        return value or []
    raise Rejected("must be a list")


def command(value: Any) -> tuple[str, ...]:
    """The program and its arguments, with {port} among them; or the one word builtin."""
    if value in (BUILTIN[0], [*BUILTIN]):
        return BUILTIN
    if not isinstance(value, list) or not value:
        raise Rejected('must be builtin, or a list: [llama-server, -m, "{file}", --port, "{port}"]')
    parts = tuple(_argument(item) for item in value)
    if not parts[0].strip():
        raise Rejected("must begin with a program")
    if not any("{port}" in part for part in parts):
        raise Rejected('must hold "{port}": the gateway chooses where the engine listens')
    return parts


def _argument(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if abs(value) < 10**_DIGITS:
            return str(value)  # as YAML reads an argument such as 8192
    if isinstance(value, str) and "\0" not in value:
        return value
    raise Rejected("must be a list of texts and numbers")


def _reject(rule: str) -> Any:
    raise Rejected(rule)
