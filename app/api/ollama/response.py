"""Ollama's objects, field by field in Ollama's order (github.com/ollama/ollama, api/types.go)."""

from datetime import datetime
from typing import Any

from app.catalog.facts import Facts
from app.catalog.manifest import Entry
from app.catalog.names import tagged


def details(entry: Entry, facts: Facts) -> dict[str, Any]:
    """ModelDetails: family from the file, quantisation from the manifest."""
    return {
        "parent_model": "",
        "format": "gguf",
        "family": facts.architecture,
        "families": [facts.architecture],
        "parameter_size": facts.size_label,
        "quantization_level": entry.quant,
    }


def tag(entry: Entry, facts: Facts) -> dict[str, Any]:
    """ListModelResponse: one model of /api/tags. ``digest`` is the SHA-256 of the first file."""
    return {
        "name": tagged(entry.name),
        "model": tagged(entry.name),
        "modified_at": entry.pulled_at,
        "size": entry.size,
        "digest": entry.first.sha256,
        "details": details(entry, facts),
    }


def show(entry: Entry, facts: Facts) -> dict[str, Any]:
    """ShowResponse: ``model_info`` is the file's own metadata without its arrays."""
    return {
        "details": details(entry, facts),
        "model_info": facts.values,
        "modified_at": entry.pulled_at,
    }


def running(entry: Entry, facts: Facts, expires: datetime) -> dict[str, Any]:
    """ProcessModelResponse: one model of /api/ps; where its weights lie is not known (0)."""
    return {
        "name": tagged(entry.name),
        "model": tagged(entry.name),
        "size": entry.size,
        "digest": entry.first.sha256,
        "details": details(entry, facts),
        "expires_at": expires.isoformat().replace("+00:00", "Z"),
        "size_vram": 0,
        "context_length": facts.context_length,
    }
