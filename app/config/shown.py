"""What a message may repeat of a configuration: nothing in which a key or a password can stand.

Pure. Whoever writes a key at the wrong place, or a line of YAML that cannot be read, finds it in no
log: a message names the place and the rule. Values are shown only where they are of a kind that is
no secret: numbers, durations and sizes, and addresses that are nothing but scheme, host and port.
"""

import ipaddress
import re
from typing import Any

import yaml

NOTHING = "(not shown)"
_LARGEST = 10**12
# A count with a unit, right or wrong: 5, -1, 1.5, 10sec, 64 MB.
_COUNT = re.compile(r"-?\d{1,12}(\.\d{1,6})?( ?[A-Za-z]{1,3})?")
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]{1,80}/?")
_KEY_NAME = re.compile(r"[A-Za-z]+([-_][A-Za-z]+){0,5}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_LONGEST_NAME = 40
# Where a number can be a key too: those of keys, and what should have been more than one value.
_SECRET = re.compile(r"(api[-_]key|rate[-_]storage|sha256|command)$|^keys(\[\d+\])?$"
                     r"|^loop(\.engines(\[\d+\])?)?$|^server$|^$")
# A message of PyYAML as far as it quotes only tokens, such as '<block end>' and ',': not our text.
_OWN_WORDS = re.compile(r"""([^'"]|'(<[a-z ]+>|[^\w\s]|\\t)')*""")


def value(found: Any, path: str) -> str:
    """The value at a key path as a message may have it."""
    if isinstance(found, (dict, list)) and found:
        return "a mapping" if isinstance(found, dict) else "a list"
    if found in ("", "null", [], {}) or isinstance(found, bool):
        return repr(found)
    if _SECRET.search(path) or not _is_harmless(found):
        return NOTHING
    return repr(found)


def name(found: Any) -> str | None:
    """The name of a key that there is not; None where it may be something else than a name."""
    if found is None or isinstance(found, int) and abs(found) < _LARGEST:
        return str(found)
    good = isinstance(found, str) and len(found) <= _LONGEST_NAME and _KEY_NAME.fullmatch(found)
    return str(found) if good else None


def variable(found: str) -> str:
    """A variable of the environment, of which more is said, by its name if it is one."""
    named = len(found) <= _LONGEST_NAME and _VARIABLE.fullmatch(found)
    return f"the variable {found}," if named else "a variable"


def reason(error: Exception) -> str:
    """Why a text is no YAML, and where, without a word of it."""
    mark = getattr(error, "problem_mark", None)
    if mark:
        what = str(getattr(error, "problem", None) or "it cannot be read").partition(": ")[0]
        own = _OWN_WORDS.match(what)
        return f"{own[0].rstrip() if own else ''} (line {mark.line + 1}, column {mark.column + 1})"
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 (byte {error.start + 1})"
    if isinstance(error, yaml.reader.ReaderError):
        return f"it has a character that must not be there (character {error.position + 1})"
    if isinstance(error, RecursionError):
        return "it is too deep"
    return "a value is none of the type that it is written as"


def _is_harmless(found: Any) -> bool:
    if isinstance(found, (int, float)):
        return abs(found) < _LARGEST
    if not isinstance(found, str):
        return False
    return bool(_COUNT.fullmatch(found) or _URL.fullmatch(found)) or _is_address(found)


def _is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        return False
