"""Which schemas the routes have, in requests and in answers, by rule and method."""

from dataclasses import dataclass, replace

from marshmallow import Schema

from app.api.extensions import ExtensionsView
from app.api.juno.schemas import InferenceView, NamedInferenceView
from app.api.native import OF_ITSELF, TOLD
from app.api.ollama.schemas import ShowView
from app.api.openai.routes import ENDPOINTS
from app.api.openai.schemas import ChatView, CompletionView, NamedChatView
from app.api.openapi import answers, ollama_answers, requests
from app.api.view import AnyView
from app.telemetry.exposition import CONTENT_TYPE

JSON, EVENTS, LINES = "application/json", "text/event-stream", "application/x-ndjson"
TEXT = "text/plain; charset=utf-8"

Body = tuple[type[Schema], ...]


@dataclass(frozen=True)
class Operation:
    """One method of one route.

    ``body`` are the schemas that a request's body has to fit, all of them, or its media type.
    ``answer`` is that of the answer with one of these ``statuses``, which is of this ``content``
    ("" for none); None where it is the engine's. ``stream`` is the type of the answer where it can
    be a stream. ``asks`` is whether an engine is asked, ``passes`` whether its refusals pass as
    they are, with ``native`` all that it says; ``changes`` is whether the registry may be another
    one then. ``errors`` are more statuses, ``refused`` is the one that it ever has.
    """

    tag: str
    body: Body | str = ()
    answer: type[Schema] | None = None
    statuses: tuple[int, ...] = (200,)
    content: str = JSON
    stream: str = ""
    form: bool = False
    query: tuple[str, ...] = ()
    asks: bool = False
    passes: bool = False
    native: bool = False
    changes: bool = False
    errors: tuple[int, ...] = ()
    refused: int | None = None


_OPENAI = Operation("OpenAI", asks=True, passes=True, stream=EVENTS)
_NATIVE = Operation("llama-server", asks=True, passes=True, native=True)
_OLLAMA = Operation("Ollama")
_STREAMED = {"/completion", "/completions", "/chat/completions", "/responses", "/infill"}
_FORMS = ("/v1/audio/tr", "/v1/images/edits", "/v1/images/variations", "/audio/")
_ANY: Body = (AnyView, ExtensionsView)

Table = dict[tuple[str, str], Operation]


def operations(model_optional: bool) -> Table:
    """By rule and method; ``model_optional`` is whether there is a default model."""
    return {**_passed_through(), **_checked(model_optional), **_ollama(), **_registry(), **_own()}


def _checked(model_optional: bool) -> Table:
    """What of the OpenAI and Juno APIs is described in detail."""
    chat = ChatView if model_optional else NamedChatView
    inference = InferenceView if model_optional else NamedInferenceView
    listed = Operation("OpenAI", answer=answers.Models)
    juno = Operation("Juno", body=(inference, ExtensionsView), asks=True, passes=True)
    return {
        ("/v1/models", "GET"): listed,
        ("/models", "GET"): listed,
        ("/v1/models/<path:name>", "GET"): replace(
            listed, answer=answers.Model, errors=(404,)),
        ("/v1/chat/completions", "POST"): replace(
            _OPENAI, body=(chat, ExtensionsView), answer=answers.Completion),
        ("/v1/completions", "POST"): replace(
            _OPENAI, body=(CompletionView, ExtensionsView), answer=answers.Completion),
        ("/v1/inference", "POST"): replace(juno, answer=answers.Inference),
        ("/v1/inference/stream", "POST"): replace(juno, content=EVENTS),
    }


def _passed_through() -> Table:
    """Endpoints of engines, of whose bodies little is checked, and llama-server's questions."""
    told = {f"/v1/{path}": _OPENAI for path in ENDPOINTS} | {
        path: replace(_NATIVE, stream=EVENTS if path in _STREAMED else "") for path in TOLD}
    asked = replace(_NATIVE, query=("model",))
    return {
        (path, "POST"): replace(found, body=_ANY, form=path.startswith(_FORMS))
        for path, found in told.items()
    } | {(path, method): asked for path in OF_ITSELF for method in ("GET", "POST")}


def _own() -> Table:
    own = Operation("gateway")
    return {
        ("/engines", "GET"): replace(own, answer=answers.Engines),
        ("/health", "GET"): replace(own, answer=answers.Health, statuses=(200, 503)),
        ("/metrics", "GET"): replace(
            own, content=CONTENT_TYPE, query=("model",), asks=True, passes=True, native=True),
        ("/metrics", "POST"): replace(_NATIVE, query=("model",)),
        ("/openapi.json", "GET"): own,
    }


def _ollama() -> Table:
    def answering(answer: type[Schema]) -> Operation:
        return replace(_OLLAMA, answer=answer)

    def calling(body: type[Schema], answer: type[Schema], stream: str = "") -> Operation:
        return replace(_OLLAMA, body=(body,), answer=answer, stream=stream, asks=True)

    unknown = replace(_OLLAMA, refused=401)
    return {
        ("/", "GET"): replace(_OLLAMA, content=TEXT),
        ("/api/version", "GET"): answering(ollama_answers.OllamaVersion),
        ("/api/tags", "GET"): answering(ollama_answers.OllamaTags),
        ("/api/ps", "GET"): answering(ollama_answers.OllamaPs),
        ("/api/show", "POST"): replace(
            answering(ollama_answers.OllamaShow), body=(ShowView,), asks=True),
        ("/api/chat", "POST"): calling(
            requests.OllamaChat, ollama_answers.OllamaChatLine, LINES),
        ("/api/generate", "POST"): calling(
            requests.OllamaGenerate, ollama_answers.OllamaGenerateLine, LINES),
        ("/api/embed", "POST"): calling(requests.OllamaEmbed, ollama_answers.OllamaEmbedded),
        ("/api/embeddings", "POST"): calling(
            requests.OllamaEmbeddings, ollama_answers.OllamaEmbedding),
        ("/api/status", "GET"): answering(ollama_answers.OllamaStatus),
        ("/api/experimental/model-recommendations", "GET"): answering(
            ollama_answers.OllamaRecommendations),
        ("/api/me", "POST"): unknown,
        ("/api/signout", "POST"): unknown,
        ("/api/user/keys/<key>", "DELETE"): unknown,
    }


def _registry() -> Table:
    """What is done to the models that there are."""
    empty = replace(_OLLAMA, content="", changes=True)
    told = replace(_OLLAMA, answer=ollama_answers.OllamaProgress, stream=LINES, changes=True)
    return {
        ("/api/pull", "POST"): replace(told, body=(requests.OllamaPull,)),
        ("/api/create", "POST"): replace(told, body=(requests.OllamaCreate,)),
        ("/api/copy", "POST"): replace(empty, body=(requests.OllamaCopy,)),
        ("/api/delete", "DELETE"): replace(empty, body=(requests.OllamaDelete,)),
        ("/api/push", "POST"): replace(_OLLAMA, refused=501),
        ("/api/blobs/<digest>", "HEAD"): empty,
        ("/api/blobs/<digest>", "POST"): replace(
            empty, body="application/octet-stream", statuses=(200, 201)),
    }
