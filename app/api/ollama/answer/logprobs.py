"""Log probabilities in Ollama's form (Logprob of github.com/ollama/ollama, api/types.go)."""

from typing import Any

Entry = dict[str, Any]
_UNLIKELY = -9999.0  # what OpenAI's API says for a token that is out of question


def listed(found: Any, top: int) -> list[Entry]:
    """The entries of one event, each with at most ``top`` alternatives.

    Reads the ``content`` of OpenAI's chat API, llama-server's ``completion_probabilities``, and the
    parallel lists of OpenAI's older completions API.
    """
    if isinstance(found, dict):
        if isinstance(found.get("tokens"), list):
            return _from_lists(found, top)
        found = found.get("content")
    if not isinstance(found, list):
        return []
    return [_entry(each, top) for each in found if isinstance(each, dict)]


def _entry(found: Entry, top: int) -> Entry:
    entry = _token(found)
    others = found.get("top_logprobs")
    if top and isinstance(others, list):
        entry["top_logprobs"] = [_token(each) for each in others[:top] if isinstance(each, dict)]
    return entry


def _token(found: Entry) -> Entry:
    """Half a character has no text, so the bytes are the engine's and not those of the text."""
    token, raw = found.get("token"), found.get("bytes")
    entry = {
        "token": token if isinstance(token, str) else "",
        "logprob": _number(found.get("logprob")),
    }
    if isinstance(raw, list):
        entry["bytes"] = [byte for byte in raw if type(byte) is int]
    return entry


def _number(value: Any) -> float:
    """The value where JSON can hold it: engines send null or NaN for minus infinity."""
    if type(value) in (float, int) and _UNLIKELY < value < -_UNLIKELY:
        return float(value)
    return _UNLIKELY


def _from_lists(found: Entry, top: int) -> list[Entry]:
    tokens = found["tokens"]
    values, others = _list(found.get("token_logprobs")), _list(found.get("top_logprobs"))
    entries = []
    for i, token in enumerate(tokens):
        entry = _token({"token": token, "logprob": values[i] if i < len(values) else None})
        if top and i < len(others) and isinstance(others[i], dict):
            pairs = list(others[i].items())[:top]
            entry["top_logprobs"] = [_token({"token": t, "logprob": p}) for t, p in pairs]
        entries.append(entry)
    return entries


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
