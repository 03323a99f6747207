"""Keeps lines short enough for clients that read them with a limit (aiohttp's is 128 KiB)."""

from collections.abc import Iterator
from itertools import zip_longest

from app.api.ollama.answer.shapes import Line, Said

_CHARACTERS = 8000  # at most six bytes each
_ENTRIES = 16       # log probabilities: 3 KB each with twenty alternatives


def portions(content: str, thinking: str, logprobs: list[Line]) -> Iterator[Said]:
    """What one event said, in one portion unless it is very long; nothing where it is nothing."""
    if len(content) + len(thinking) <= _CHARACTERS and len(logprobs) <= _ENTRIES:
        if content or thinking or logprobs:
            yield Said(content, thinking, None, logprobs)
        return
    texts = [("", thought) for thought in _cut(thinking)] + [(text, "") for text in _cut(content)]
    for both, entries in zip_longest(texts, _groups(logprobs), fillvalue=None):
        text, thought = both or ("", "")
        yield Said(text, thought, None, entries)


def _cut(text: str) -> list[str]:
    return [text[i:i + _CHARACTERS] for i in range(0, len(text), _CHARACTERS)]


def _groups(entries: list[Line]) -> list[list[Line]]:
    return [entries[i:i + _ENTRIES] for i in range(0, len(entries), _ENTRIES)]
