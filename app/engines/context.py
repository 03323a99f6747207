"""What an engine's command makes of a model: the context it gives, and the memory that needs.

Pure: it looks at the command and at what is known of the model. The commands known are that of
the built-in engine, llama-server's and vLLM's; the last of equal options counts, as with them.
"""

import re
from collections.abc import Sequence
from itertools import zip_longest

from app.catalog.footprint import BATCH, estimate
from app.catalog.model_facts import ModelFacts
from app.engines.builtin_size import batch, slot_context

BUILTIN = "builtin"  # as the whole command: app.engines.builtin with what it needs
_BUILTIN_MODULE = "app.engines.builtin"
_CONTEXT = ("-c", "--ctx-size")
_CONTEXT_OF_A_CALL = ("--max-model-len",)
_BATCH = ("-ub", "--ubatch-size")
_EMBEDS = {"--embedding", "--embeddings"}
_UNITS = {"": 1, "k": 1000, "K": 1024, "m": 1000**2, "M": 1024**2}
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)([kKmM]?)")


def context_of(command: Sequence[str], model: ModelFacts, slots: int) -> int:
    """Tokens of all slots together, where the command is run for the model.

    Its placeholders may be filled or not; a shell's command line may be one word of it.
    """
    words = _words(command)
    usual = slots * slot_context(model.file)
    if _is_builtin(words):
        return _told(words, ("--ctx",)) or usual
    told = _told(words, _CONTEXT)
    if told is None:
        told = slots * (_told(words, _CONTEXT_OF_A_CALL) or 0)
    return told or model.file.context_length or usual


def memory_of(command: Sequence[str], model: ModelFacts, slots: int) -> int:
    """Bytes that the engine will need, estimated, where the command is run for the model."""
    words = _words(command)
    slots = max(slots, 1)
    context = context_of(command, model, slots)
    if _is_builtin(words):
        at_once = batch(model.file, context // slots, model.projector is not None)
        return estimate(model, context, slots, at_once, embeds=True)
    at_once = _told(words, _BATCH) or BATCH
    return estimate(model, context, slots, at_once, embeds=not _EMBEDS.isdisjoint(words))


def _is_builtin(words: Sequence[str]) -> bool:
    return words == [BUILTIN] or _BUILTIN_MODULE in words


def _words(command: Sequence[str]) -> list[str]:
    """The words, with the - that long options may have as _, and values apart from their =."""
    words = [word for part in command for word in part.split()]
    return [piece for word in words for piece in _pieces(word)]


def _pieces(word: str) -> list[str]:
    name, equals, value = word.partition("=")
    if not name.startswith("--"):
        return [word]
    return [name.replace("_", "-"), *([value] if equals else [])]


def _told(words: Sequence[str], names: Sequence[str]) -> int | None:
    """The number of an option; None where it has none."""
    found = [number for name, value in zip_longest(words, words[1:], fillvalue="")
             if name in names and (number := _number(value)) is not None]
    return found[-1] if found else None


def _number(text: str) -> int | None:
    match = _NUMBER.fullmatch(text)
    return int(float(match[1]) * _UNITS[match[2]]) if match else None
