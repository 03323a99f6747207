"""Strict JSON (RFC 8259) in, compact JSON out: what the standard reader lets pass is refused here.

Python's reader takes NaN and Infinity, turns 1e999 into infinity, keeps the last of two equal
keys, and gives up on deep nesting with an error that is no ValueError. Two readers of one body
would then see two different requests, so all of these are errors.
"""

import json
import math
from collections import Counter
from datetime import datetime
from typing import Any

MAX_DEPTH = 256  # levels of nesting: real requests and schemas stay below 30
_BOM = b"\xef\xbb\xbf"


class JsonError(ValueError):
    """Not the JSON that is wanted; the message completes the sentence "the text is …"."""


def decode(raw: bytes | bytearray) -> Any:
    """The value that ``raw`` holds, which must be UTF-8; a leading byte-order mark is skipped.

    Integers keep every digit and ``-0`` its sign. Raises JsonError and nothing else.
    """
    try:
        text = raw.decode("utf-8-sig" if raw.startswith(_BOM) else "utf-8")
        value = _DECODER.decode(text)
    except JsonError:
        raise
    except RecursionError:
        raise JsonError(_TOO_DEEP) from None
    except ValueError:
        raise JsonError("not valid JSON") from None
    # Finding brackets is a memory scan: only a body that could be too deep is walked.
    if _openings(raw, b"[") + _openings(raw, b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise JsonError(_TOO_DEEP)
    return value


def encode(value: Any) -> bytes:
    """Compact UTF-8 JSON in the order of the keys.

    Half a surrogate pair, which UTF-8 cannot carry, stays a ``\\u`` escape. Raises ValueError for
    NaN and infinity.
    """
    return _ENCODER.encode(value).encode("utf-8", "backslashreplace")


def timestamp(at: datetime) -> str:
    """A time with its zone as RFC 3339 writes it, UTC as Z."""
    return at.isoformat().replace("+00:00", "Z")


_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


def _openings(raw: bytes | bytearray, mark: bytes) -> int:
    """How often the mark stands there, one more than may be at most.

    Not by ``count``, which looks at byte after byte: a fifth of the time for a large picture.
    """
    count, at = 0, raw.find(mark)
    while at >= 0 and count <= MAX_DEPTH:
        count, at = count + 1, raw.find(mark, at + 1)
    return count


def _depth(value: Any) -> int:
    """How many levels of objects and arrays there are, found level by level, not by recursion."""
    level, depth = [value] if isinstance(value, (dict, list)) else [], 0
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
    return depth


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        name = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise JsonError(f"not valid JSON: the key '{name[:80]}' is repeated")
    return found


def _integer(digits: str) -> int | float:
    if digits == "-0":
        return -0.0  # as an int it would lose its sign on the way to the engine
    try:
        return int(digits)
    except ValueError:  # over the interpreter's limit of digits, a guard against quadratic time
        raise JsonError(f"not readable: a number has {len(digits)} digits") from None


def _real(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise JsonError("not valid JSON: a number is out of range")
    return number


def _constant(name: str) -> Any:
    raise JsonError(f"not valid JSON: {name} is no JSON value")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
