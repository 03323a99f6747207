"""GET /api/ps: the models that are loaded, and beside Ollama's list those that load or failed."""

from datetime import datetime, timezone
from typing import Any

from flask import Response

from app.api.http import json_response, services
from app.api.ollama import objects
from app.api.security import principal
from app.catalog.names import tagged
from app.model_status import ModelStatus


def ps() -> Response:
    """The loaded models, the one that stays longest first; ``loading`` and ``failed`` by name."""
    now = datetime.now(timezone.utc)
    allows = principal().allows
    every = services().gateway.status.present()
    present = {name: status for name, status in every.items() if allows(name)}
    loaded = {name: objects.expiry(status.until, now)
              for name, status in present.items() if status.loaded}
    names = sorted(loaded, key=lambda name: (-loaded[name].timestamp(), name))
    models = (_running(name, loaded[name], present[name]) for name in names)
    beside = {value: _named(present, value) for value in ("loading", "failed")}
    return json_response({
        "models": [model for model in models if model],
        **{value: found for value, found in beside.items() if found},
    })


def _running(name: str, expires: datetime, status: ModelStatus) -> dict[str, Any] | None:
    entry = services().registry.find(name)
    if entry is None:
        return None
    engine = services().gateway.engine_facts(entry.name)
    model = services().facts.of_model(entry)
    return objects.running(model, expires, engine, memory=status.memory)


def _named(present: dict[str, ModelStatus], value: str) -> list[dict[str, Any]]:
    return [
        {"name": tagged(name), **({"error": status.error} if status.error else {})}
        for name, status in sorted(present.items()) if status.value == value
    ]
