"""Schemas of what the gateway answers itself, field by field; what engines answer is theirs."""

from typing import Any

from marshmallow import EXCLUDE, Schema, fields

_NEEDED: dict[str, Any] = {"required": True}
_NULLABLE: dict[str, Any] = {"required": True, "allow_none": True}


def _one_of(*words: str) -> fields.String:
    return fields.String(required=True, metadata={"enum": list(words)})


class Health(Schema):
    """GET /health."""

    status = _one_of("ok", "stopping")


class ModelMeta(Schema):
    """What the file says of a model, as llama-server's router tells it."""

    n_ctx_train = fields.Integer()
    n_params = fields.Integer()
    size = fields.Integer()
    ftype = fields.String()


class ModelLoad(Schema):
    """Whether a model is loaded."""

    value = _one_of("loaded", "loading", "unloaded", "failed")
    memory = fields.Integer()
    idle_until = fields.DateTime()
    error = fields.String()


class Model(Schema):
    """One model of the registry, for OpenAI's clients."""

    id = fields.String(**_NEEDED)
    object = _one_of("model")
    created = fields.Integer(**_NEEDED)
    owned_by = fields.String(**_NEEDED)
    context_length = fields.Integer()
    max_model_len = fields.Integer()
    meta = fields.Nested(ModelMeta, **_NEEDED)
    status = fields.Nested(ModelLoad, **_NEEDED)


class Models(Schema):
    """GET /v1/models."""

    object = _one_of("list")
    data = fields.List(fields.Nested(Model), **_NEEDED)


class Inference(Schema):
    """POST /v1/inference."""

    requestId = fields.String(**_NEEDED)
    text = fields.String(**_NEEDED)
    tokenCount = fields.Integer(**_NULLABLE)
    promptTokenCount = fields.Integer(**_NULLABLE)
    finishReason = _one_of("stop", "length", "error")
    modelId = fields.String(**_NEEDED)
    latencyMs = fields.Integer(**_NEEDED)


class Engine(Schema):
    """One engine of GET /engines; the fields behind ``last_error`` are those of managed ones."""

    id = fields.String(**_NEEDED)
    kind = _one_of("attached", "managed")
    models = fields.List(fields.String(), **_NEEDED)
    state = _one_of(
        "ready", "suspect", "loading", "stopped", "starting", "stopping", "failed")
    slots = fields.Integer(**_NULLABLE)
    running = fields.Integer(**_NEEDED)
    queued = fields.Integer(**_NEEDED)
    strikes = fields.Integer(**_NEEDED)
    last_error = fields.String(**_NULLABLE)
    url = fields.String(allow_none=True)
    pid = fields.Integer(allow_none=True)
    memory_estimate = fields.Integer()
    memory = fields.Integer(allow_none=True)
    idle_until = fields.DateTime(allow_none=True)
    starts = fields.Integer()


class Engines(Schema):
    """GET /engines."""

    memory_budget = fields.Integer(**_NULLABLE)
    memory_used = fields.Integer(**_NEEDED)
    engines = fields.List(fields.Nested(Engine), **_NEEDED)


class Completion(Schema):
    """What an engine answers to a chat or a completion; it may say more."""

    class Meta:
        unknown = EXCLUDE

    id = fields.String()
    object = fields.String()
    model = fields.String()
    choices = fields.List(fields.Dict(), **_NEEDED)
    usage = fields.Dict()
