"""Ollama's objects of models, field by field in Ollama's order.

Source: github.com/ollama/ollama, api/types.go. Where ``engine`` is asked for, it is what the engine
that runs the model says of itself, None where that is not known.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

from app import jsontext
from app.catalog.facts import ModelFacts
from app.engine_facts import EngineFacts

_A_CENTURY = timedelta(days=36_525)  # Python's and JavaScript's readers end before year 9999


class TagList:
    """GET /api/tags: each model's object is made once for as long as nothing of it changes."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[ModelFacts, bytes] = WeakKeyDictionary()

    def document(self, models: Iterable[ModelFacts]) -> bytes:
        """The JSON document of these models, in their order."""
        return b'{"models":[%b]}' % b",".join(map(self._tag, models))

    def _tag(self, model: ModelFacts) -> bytes:
        made = self._made.get(model)
        if made is None:
            made = self._made[model] = jsontext.encode(tag(model))
        return made


def details(model: ModelFacts, engine: EngineFacts | None = None) -> dict[str, Any]:
    """ModelDetails; the two lengths are left out where they are not known."""
    found = {
        "parent_model": "",
        "format": "gguf",
        "family": model.file.architecture,
        "families": model.families,
        "parameter_size": model.parameter_size,
        "quantization_level": model.quantization(engine),
    }
    lengths = {
        "context_length": model.context_length(engine),
        "embedding_length": model.file.embedding_length,
    }
    return {**found, **{key: length for key, length in lengths.items() if length}}


def tag(model: ModelFacts) -> dict[str, Any]:
    """ListModelResponse: one model of /api/tags, as its files are; no engine is asked."""
    return {
        "name": model.name,
        "model": model.name,
        "modified_at": model.entry.pulled_at,
        "size": model.entry.size,
        "digest": model.digest,
        "details": details(model),
        "capabilities": list(model.capabilities()),
    }


def running(
    model: ModelFacts, expires: datetime, engine: EngineFacts | None = None,
    memory: int | None = None,
) -> dict[str, Any]:
    """ProcessModelResponse: one model of /api/ps; where its weights lie is not known (0).

    ``size`` is the real ``memory`` of its engine (bytes) where that is known, else its files'.
    """
    return {
        "name": model.name,
        "model": model.name,
        "size": memory or model.entry.size,
        "digest": model.digest,
        "details": details(model, engine),
        "expires_at": jsontext.timestamp(expires),
        "size_vram": 0,
        "context_length": model.context_length(engine),
    }


def expiry(at: datetime | None, now: datetime) -> datetime:
    """When a model stops to count as loaded, for clients to read; None means never.

    Never is a century from ``now``, as the readers of several clients end at the year 9999.
    """
    never = now + _A_CENTURY
    return never if at is None else min(at, never)
