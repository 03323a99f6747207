"""The gateway's own OpenAI objects."""

from typing import Any

from app.catalog.facts import ModelFacts
from app.engine_facts import EngineFacts
from app.jsontext import timestamp
from app.model_status import ModelStatus


def model_object(
    model: ModelFacts, status: ModelStatus, engine: EngineFacts | None = None
) -> dict[str, Any]:
    """The model object of GET /v1/models; ``created`` is when the model was pulled.

    Beside OpenAI's four fields: the tokens that one call may use, under the names that vLLM's and
    OpenRouter's clients know, llama-server's ``meta``, and ``status`` as its router has it. What is
    not known is left out, as a client would take 0 or null for a value.
    """
    context = model.context_length(engine)
    meta = {
        "n_ctx_train": model.file.context_length,
        "n_params": model.parameters,
        "size": model.entry.size,
        "ftype": model.quantization(engine),
    }
    return {
        "id": model.entry.name, "object": "model", "created": model.entry.created,
        "owned_by": "loop",
        **({"context_length": context, "max_model_len": context} if context else {}),
        "meta": {key: value for key, value in meta.items() if value},
        "status": _status(status),
    }


def _status(status: ModelStatus) -> dict[str, Any]:
    idle_until = None if status.in_use or status.until is None else timestamp(status.until)
    facts = {"memory": status.memory, "idle_until": idle_until, "error": status.error}
    return {"value": status.value, **{key: value for key, value in facts.items() if value}}
