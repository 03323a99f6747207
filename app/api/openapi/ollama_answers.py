"""Schemas of what Ollama's clients are answered (github.com/ollama/ollama, api/types.go)."""

from typing import Any

from marshmallow import Schema, fields

_NEEDED: dict[str, Any] = {"required": True}


class OllamaVersion(Schema):
    """GET /api/version."""

    version = fields.String(**_NEEDED)


class OllamaDetails(Schema):
    """What kind of model it is."""

    parent_model = fields.String(**_NEEDED)
    format = fields.String(**_NEEDED)
    family = fields.String(**_NEEDED)
    families = fields.List(fields.String(), **_NEEDED)
    parameter_size = fields.String(**_NEEDED)
    quantization_level = fields.String(**_NEEDED)
    context_length = fields.Integer()
    embedding_length = fields.Integer()


class OllamaTag(Schema):
    """One model of GET /api/tags."""

    name = fields.String(**_NEEDED)
    model = fields.String(**_NEEDED)
    modified_at = fields.String(**_NEEDED)
    size = fields.Integer(**_NEEDED)
    digest = fields.String(**_NEEDED)
    details = fields.Nested(OllamaDetails, **_NEEDED)
    capabilities = fields.List(fields.String(), **_NEEDED)


class OllamaTags(Schema):
    """GET /api/tags."""

    models = fields.List(fields.Nested(OllamaTag), **_NEEDED)


class OllamaRunning(Schema):
    """One loaded model."""

    name = fields.String(**_NEEDED)
    model = fields.String(**_NEEDED)
    size = fields.Integer(**_NEEDED)
    digest = fields.String(**_NEEDED)
    details = fields.Nested(OllamaDetails, **_NEEDED)
    expires_at = fields.DateTime(**_NEEDED)
    size_vram = fields.Integer(**_NEEDED)
    context_length = fields.Integer(**_NEEDED)


class OllamaUnloaded(Schema):
    """One model that is on its way, or has failed."""

    name = fields.String(**_NEEDED)
    error = fields.String()


class OllamaPs(Schema):
    """GET /api/ps."""

    models = fields.List(fields.Nested(OllamaRunning), **_NEEDED)
    loading = fields.List(fields.Nested(OllamaUnloaded))
    failed = fields.List(fields.Nested(OllamaUnloaded))


class OllamaShow(Schema):
    """What is known of one model."""

    details = fields.Nested(OllamaDetails, **_NEEDED)
    model_info = fields.Dict(**_NEEDED)
    modified_at = fields.String(**_NEEDED)
    license = fields.String(**_NEEDED)
    modelfile = fields.String(**_NEEDED)
    parameters = fields.String(**_NEEDED)
    template = fields.String(**_NEEDED)
    system = fields.String(**_NEEDED)
    capabilities = fields.List(fields.String(), **_NEEDED)
    projector_info = fields.Dict()


class OllamaLine(Schema):
    """One line of a stream, or the whole answer; the numbers stand in the last line."""

    model = fields.String(**_NEEDED)
    created_at = fields.DateTime(**_NEEDED)
    done = fields.Boolean(**_NEEDED)
    done_reason = fields.String()
    logprobs = fields.List(fields.Dict())
    total_duration = fields.Integer()
    load_duration = fields.Integer()
    prompt_eval_count = fields.Integer()
    prompt_eval_duration = fields.Integer()
    eval_count = fields.Integer()
    eval_duration = fields.Integer()


class OllamaMessage(Schema):
    """What the model says."""

    role = fields.String(**_NEEDED)
    content = fields.String(**_NEEDED)
    thinking = fields.String()
    tool_calls = fields.List(fields.Dict())


class OllamaChatLine(OllamaLine):
    """POST /api/chat."""

    message = fields.Nested(OllamaMessage, **_NEEDED)


class OllamaGenerateLine(OllamaLine):
    """POST /api/generate."""

    response = fields.String(**_NEEDED)
    thinking = fields.String()
    tool_calls = fields.List(fields.Dict())
    context = fields.List(fields.Integer())


class OllamaEmbedded(Schema):
    """POST /api/embed."""

    model = fields.String(**_NEEDED)
    embeddings = fields.List(fields.List(fields.Float()), **_NEEDED)
    total_duration = fields.Integer()
    load_duration = fields.Integer()
    prompt_eval_count = fields.Integer()


class OllamaEmbedding(Schema):
    """POST /api/embeddings."""

    embedding = fields.List(fields.Float(), **_NEEDED)


class OllamaProgress(Schema):
    """One line of what takes a while."""

    status = fields.String(**_NEEDED)
    digest = fields.String()
    total = fields.Integer()
    completed = fields.Integer()


class OllamaCloud(Schema):
    """What there is of Ollama's cloud."""

    disabled = fields.Boolean(**_NEEDED)
    source = fields.String(**_NEEDED)


class OllamaStatus(Schema):
    """GET /api/status."""

    cloud = fields.Nested(OllamaCloud, **_NEEDED)


class OllamaRecommendations(Schema):
    """GET /api/experimental/model-recommendations."""

    recommendations = fields.List(fields.Dict(), **_NEEDED)
