"""What a llama-server can bear of a JSON schema that answers are held to.

It makes a grammar of a schema, with repetitions written out: a few bytes of schema can take all
memory. Sources: llama.cpp, common/json-schema-to-grammar.cpp and src/llama-grammar.cpp
(MAX_REPETITION_THRESHOLD); measured on b11549.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from app.api.ollama.refusal import Refusal, invalid

Schema = dict[str, Any]

_REPETITIONS = 1999  # of one thing; a chat's grammar refuses 2000
# Of all things together: so many items of arrays took /completion 230 MB.
_ALL_REPETITIONS = 100_000
# lower limit → upper limit, and how high they may be; the first item of an array is no repetition
_COUNTED = {"minItems": ("maxItems", _REPETITIONS + 1), "minLength": ("maxLength", _REPETITIONS)}
_BRACES = re.compile(r"\{([0-9]+)(?:,([0-9]*))?\}")

_NAMED = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
_VALUES = {"const", "enum", "default", "examples", "example"}

# What a chat's grammar knows. /completion may be built with llguidance: it lets an answer be
# anything once the schema has a keyword that it does not know, and some that it does know, such
# as a large multipleOf, take all memory.
_COMMON = {
    "type", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "definitions",
    "properties", "required", "additionalProperties",
    "items", "prefixItems", "minItems", "maxItems", "minLength", "maxLength",
}
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")  # of integers
_INT64 = 2**63 - 1
_FORMATS = ("date", "time", "date-time", "uuid")
_IRREGULAR = re.compile(r"\(\?(?!:)|\\[bB1-9k]")  # looks around or back


def bearable(schema: Schema, path: str) -> Schema:
    """``schema`` without upper limits that are too high for any engine to hold an answer to.

    Raises Refusal, ``path`` in front, for a lower limit that is too high or above its upper one,
    and for more repetitions in all than there is memory for.
    """
    total = 0

    def change(node: Schema) -> Schema:
        nonlocal total
        total += sum(_in_pattern(node.get("pattern"), path))
        kept = dict(node)
        for lower, (upper, limit) in _COUNTED.items():
            low, high = _number(node.get(lower)) or 0, _number(node.get(upper))
            if low > limit:
                raise _too_many(path, lower, limit)
            if high is not None and low > high:
                raise invalid(f"{path}: {lower} is above {upper}")
            if high is not None and high > limit:
                del kept[upper]
                high = None
            total += int(max(low, high or 0, 0))
        return kept

    made: Schema = _changed(schema, change)
    if total > _ALL_REPETITIONS:
        raise invalid(f"{path}: minItems, maxItems, minLength, maxLength and the repetitions in "
                      f"patterns come to more than {_ALL_REPETITIONS}, the most that an engine "
                      "has room for")
    return made


def common(schema: Schema) -> Schema:
    """What of ``schema`` holds in a chat too, for /completion."""
    made: Schema = _changed(schema, _known)
    return made


def _known(node: Schema) -> Schema:
    kept = {key: value for key, value in node.items() if key in _COMMON}
    if "oneOf" in node:  # a grammar cannot tell it from anyOf
        kept["anyOf"] = node["oneOf"]
    if node.get("type") == "integer":
        bounds = {name: _number(node.get(name)) for name in _BOUNDS}
        kept.update({k: n for k, n in bounds.items() if isinstance(n, int) and abs(n) <= _INT64})
    if node.get("format") in _FORMATS:
        kept["format"] = node["format"]
    if "pattern" in node and not _IRREGULAR.search(str(node["pattern"])):
        kept["pattern"] = node["pattern"]
    return kept


def _changed(value: Any, change: Callable[[Schema], Schema]) -> Any:
    """``value`` with each schema in it changed, the outermost first."""
    if isinstance(value, list):
        return [_changed(each, change) for each in value]
    if not isinstance(value, dict):
        return value
    made: Schema = {}
    for key, inner in change(value).items():
        if key in _NAMED and isinstance(inner, dict):
            made[key] = {name: _changed(each, change) for name, each in inner.items()}
        else:
            made[key] = inner if key in _VALUES else _changed(inner, change)
    return made


def _in_pattern(pattern: Any, path: str) -> Iterator[int]:
    """How often a pattern repeats each thing; where there is no end, it is not written out."""
    for least, most in _BRACES.findall(pattern if isinstance(pattern, str) else ""):
        low, high = int(least[:20]), int(most[:20] or 0)
        if low > _REPETITIONS:
            raise _too_many(path, "pattern", _REPETITIONS)
        yield max(low, high if high <= _REPETITIONS else 0)


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _too_many(path: str, name: str, limit: int) -> Refusal:
    return invalid(f"{path}: {name} asks for more than {limit}, the most that an engine can count")
