"""Schemas of Ollama's requests, which the routes check field by field, in Ollama's words.

Source: github.com/ollama/ollama, api/types.go. Other fields are ignored, null counts as absent.
"""

from typing import Any

from marshmallow import fields

from app.api.view import Flag, Text, View, Whole

_OPTIONAL: dict[str, Any] = {"allow_none": True}


class Object(fields.Raw):
    """An object whose fields are described elsewhere."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(metadata={"type": "object"}, **kwargs)


class Objects(fields.Raw):
    """A list of such objects."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(metadata={"type": "array", "items": {"type": "object"}}, **kwargs)


class KeepAlive(fields.Raw):
    """Seconds, or a duration such as "5m"."""

    def __init__(self) -> None:
        super().__init__(metadata={"type": ["number", "string"]}, **_OPTIONAL)


class OllamaCall(View):
    """What every call for an engine may have."""

    model = Text(required=True)
    keep_alive = KeepAlive()


class OllamaAnswered(OllamaCall):
    """What calls for an answer in words may have beside that; docs/ollama.md has the options."""

    options = Object(**_OPTIONAL)
    stream = Flag(**_OPTIONAL)
    format = fields.Raw(metadata={"type": ["string", "object"]}, **_OPTIONAL)
    think = fields.Raw(metadata={"type": ["boolean", "string"]}, **_OPTIONAL)
    truncate = Flag(**_OPTIONAL)
    logprobs = Flag(**_OPTIONAL)
    top_logprobs = Whole(**_OPTIONAL)


class OllamaChat(OllamaAnswered):
    """POST /api/chat."""

    messages = Objects(**_OPTIONAL)
    tools = Objects(**_OPTIONAL)


class OllamaGenerate(OllamaAnswered):
    """POST /api/generate."""

    prompt = Text(may_be_blank=True, **_OPTIONAL)
    suffix = Text(may_be_blank=True, **_OPTIONAL)
    system = Text(may_be_blank=True, **_OPTIONAL)
    template = Text(may_be_blank=True, **_OPTIONAL)
    raw = Flag(**_OPTIONAL)
    images = fields.Raw(metadata={"type": "array", "items": {"type": "string"}}, **_OPTIONAL)
    context = fields.Raw(metadata={"type": "array", "items": {"type": "integer"}}, **_OPTIONAL)


class OllamaEmbed(OllamaCall):
    """POST /api/embed."""

    input = fields.Raw(
        metadata={"type": ["string", "array"], "items": {"type": "string"}}, **_OPTIONAL)
    truncate = Flag(**_OPTIONAL)
    dimensions = Whole(**_OPTIONAL)


class OllamaEmbeddings(OllamaCall):
    """POST /api/embeddings."""

    prompt = Text(may_be_blank=True, **_OPTIONAL)


class OllamaNamed(View):
    """A model; ``name`` is the older word for ``model``."""

    model = Text(may_be_blank=True, **_OPTIONAL)
    name = Text(may_be_blank=True, **_OPTIONAL)


class OllamaPull(OllamaNamed):
    """POST /api/pull."""

    stream = Flag(**_OPTIONAL)


class OllamaCreate(OllamaPull):
    """POST /api/create: ``from`` a model, or of ``files``, which are blobs by their digests."""

    files = Object(**_OPTIONAL)
    system = Text(may_be_blank=True, **_OPTIONAL)
    template = Text(may_be_blank=True, **_OPTIONAL)
    parameters = Object(**_OPTIONAL)
    messages = Objects(**_OPTIONAL)
    license = fields.Raw(
        metadata={"type": ["string", "array"], "items": {"type": "string"}}, **_OPTIONAL)

    class Meta(View.Meta):
        include = {"from": Text(may_be_blank=True, **_OPTIONAL)}  # a word of Python's


class OllamaCopy(View):
    """POST /api/copy."""

    source = Text(required=True)
    destination = Text(required=True)


class OllamaDelete(OllamaNamed):
    """DELETE /api/delete."""
