"""The gateway's own OpenAI objects."""

from typing import Any

from app.catalog.manifest import Entry


def model_object(entry: Entry) -> dict[str, Any]:
    """The model object of GET /v1/models; ``created`` is when the model was pulled."""
    return {
        "id": entry.name, "object": "model", "created": entry.created, "owned_by": "loop",
    }
