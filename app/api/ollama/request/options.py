"""Ollama's options as the engine's sampling fields.

Names, types and defaults are Ollama's (api/types.go, DefaultOptions). What llama-server refuses is
brought into its range (tools/server, server-schema.cpp). Options that it is started with, and
those of older versions, have no meaning in a request and are left out without a word.
"""

from typing import Any, TypeVar

from app.api.ollama.refusal import invalid
from app.engine_facts import EngineFacts

Options = dict[str, Any]
_Number = TypeVar("_Number", int, float)

_INT32 = 2**31 - 1
_INT64 = 2**63 - 1
_FLOAT32 = 3.4e38
_TURNS = 10  # a run without an end of its own is stopped after so many contexts, as in Ollama
# The engine allocates this many tokens in one piece; 2**31 - 1 of them took 8 GiB.
_LONGEST_MEMORY = 2**20

# name → (the engine's name, default, lowest, highest)
_WHOLE: dict[str, tuple[str, int, int, int]] = {
    "seed": ("seed", -1, -_INT64, _INT64),
    "top_k": ("top_k", 40, 0, _INT32),
    "num_keep": ("n_keep", 4, -1, _INT32),
}
# name → (default, lowest, highest)
_REAL: dict[str, tuple[float, float, float]] = {
    "temperature": (0.8, 0.0, _FLOAT32),
    "top_p": (0.9, 0.0, 1.0),
    "min_p": (0.0, 0.0, 1.0),
    "typical_p": (1.0, 0.0, 1.0),
    "presence_penalty": (0.0, -_FLOAT32, _FLOAT32),
    "frequency_penalty": (0.0, -_FLOAT32, _FLOAT32),
}
# Ollama ignores these by now: what is no number is no error.
_MIROSTAT = {"mirostat": 2.0, "mirostat_tau": _FLOAT32, "mirostat_eta": _FLOAT32}
# What engines of any make take, in the range that the strict ones accept: name → (lowest, highest)
_PORTABLE = {
    "temperature": (0.0, 2.0),
    "top_p": (1e-6, 1.0),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
}


def engine_fields(options: Options, facts: EngineFacts) -> dict[str, Any]:
    """The sampling fields of the engine's request. Raises Refusal for a value of a wrong type.

    llama-server gets every sampler, since its own defaults and those in the model's file differ
    from Ollama's; any other engine gets only what was asked for and what every engine takes.
    """
    given = {name: value for name, value in options.items() if value is not None}
    found = _all(given, facts.slot_context) if facts.is_llama_server else _portable(given)
    stop = _stop(given.get("stop", []))
    return {**found, "stop": stop} if stop else found


def _all(given: Options, context: int) -> dict[str, Any]:
    fields: dict[str, Any] = {"n_predict": _n_predict(_whole(given, "num_predict", -1), context)}
    for name, (field, default, low, high) in _WHOLE.items():
        fields[field] = _between(low, _whole(given, name, default), high)
    for name, (usual, least, most) in _REAL.items():
        fields[name] = _between(least, _real(given, name, usual), most)
    fields["repeat_last_n"] = _repeat_last_n(_whole(given, "repeat_last_n", 64), context)
    penalty = _real(given, "repeat_penalty", 1.0)
    fields["repeat_penalty"] = min(penalty, _FLOAT32) if penalty > 0 else 1.0  # 0 is refused
    for name, most in _MIROSTAT.items():
        if _is_number(given.get(name)):
            value = float(_between(0.0, given[name], most))
            fields[name] = int(value) if name == "mirostat" else value
    return fields


def _n_predict(wanted: int, context: int) -> int:
    """-1 is no limit, -2 until the context is full; the engine takes no other negative."""
    if wanted == -2 and context:
        return context
    longest = _TURNS * context if context else _INT32
    if wanted < 0:
        return longest if context else -1
    return _between(1, wanted, longest)  # for 0 the engine makes one token, as under Ollama


def _repeat_last_n(wanted: int, context: int) -> int:
    """-1 is the whole context."""
    longest = context or _LONGEST_MEMORY
    return longest if wanted < 0 else min(wanted, longest)


def _portable(given: Options) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if _whole(given, "num_predict", -1) >= 0:
        fields["max_tokens"] = max(_whole(given, "num_predict", -1), 1)
    if _whole(given, "seed", -1) != -1:
        fields["seed"] = _whole(given, "seed", -1)
    for name, (low, high) in _PORTABLE.items():
        if name in given:
            fields[name] = _between(low, _real(given, name, low), high)
    return fields


def _whole(given: Options, name: str, default: int) -> int:
    value = given.get(name, default)
    if not _is_number(value):
        raise invalid(f'option "{name}" must be of type integer')
    return int(value)


def _real(given: Options, name: str, default: float) -> float:
    value = given.get(name, default)
    if not _is_number(value):
        raise invalid(f'option "{name}" must be of type float32')
    return float(_between(-_FLOAT32, value, _FLOAT32))  # a number of 400 digits has no float


def _stop(value: Any) -> list[str]:
    """An empty text would end every answer before it begins."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list):
        raise invalid('option "stop" must be of type array')
    if not all(isinstance(text, str) for text in texts):
        raise invalid('option "stop" must be of an array of strings')
    return [text for text in texts if text]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _between(low: _Number, value: _Number, high: _Number) -> _Number:
    return min(max(value, low), high)
