"""How long a model stays loaded: seconds, or a duration as Go's time.ParseDuration reads it."""

import math
import re
from typing import Any

from app.api.ollama.refusal import Refusal, invalid, quoted

_FOREVER = (2**63 - 1) / 1e9  # seconds; Go's longest duration, 292 years
_UNITS = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6,  # both signs for micro are in use
    "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0,
}
_NUMBER = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_PLAIN = re.compile(_NUMBER)
_PART = re.compile(_NUMBER + r"([^0-9.]*)")
_LONGEST = 100  # characters; no duration needs more
_GO_TYPES = {bool: "bool", list: "[]interface {}", dict: "map[string]interface {}"}


def of(fields: dict[str, Any]) -> float | None:
    """Seconds that the request asks for, ``math.inf`` for ever, None for nothing. Raises Refusal.

    Some clients put the field among the options, where Ollama ignores it: it counts there only
    where it makes sense.
    """
    if fields.get("keep_alive") is not None:
        return seconds(fields["keep_alive"])
    options = fields.get("options")
    found = options.get("keep_alive") if isinstance(options, dict) else None
    try:
        return None if found is None else seconds(found)
    except Refusal:
        return None


def seconds(value: Any) -> float:
    """The seconds that ``value`` stands for, ``math.inf`` for ever. Raises Refusal.

    A text without a unit is read as seconds, which Ollama refuses.
    """
    if isinstance(value, str):
        return _within(_duration(value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _within(value)
    raise invalid(f"Unsupported type: '{_GO_TYPES[type(value)]}'")


def _within(value: int | float) -> float:
    return math.inf if value < 0 or value > _FOREVER else abs(float(value))


def _duration(value: str) -> float:
    sign = -1.0 if value.startswith("-") else 1.0
    rest = value[1:] if value[:1] in ("-", "+") else value
    if not rest or len(rest) > _LONGEST:
        raise invalid(f"time: invalid duration {quoted(value)}")
    if _PLAIN.fullmatch(rest):
        return sign * float(rest)
    total = 0.0
    while rest:
        part = _PART.match(rest)
        if not part:
            raise invalid(f"time: invalid duration {quoted(value)}")
        total += float(part[1]) * _unit(part[2], value)
        rest = rest[part.end():]
    return sign * total


def _unit(unit: str, value: str) -> float:
    if not unit:
        raise invalid(f"time: missing unit in duration {quoted(value)}")
    if unit not in _UNITS:
        raise invalid(f"time: unknown unit {quoted(unit)} in duration {quoted(value)}")
    return _UNITS[unit]
