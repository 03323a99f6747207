"""The OpenAI API under /v1, and whatever else an engine speaks there."""

from typing import Any

from flask import Blueprint, Response, request
from werkzeug.exceptions import MethodNotAllowed, NotFound

from app.api.body import read_any, read_json
from app.api.http import any_method, call_of, json_response, response_of, services
from app.api.openai.request import one_limit
from app.api.openai.response import model_object
from app.api.openai.schemas import ChatView, CompletionView, NamedChatView
from app.api.payload import FormBody, JsonBody
from app.api.recording import record
from app.api.view import AnyView
from app.catalog.manifest import Entry

_GET = ["GET", "HEAD", "OPTIONS"]
_POST = ["POST", "OPTIONS"]
ENDPOINTS = {
    "chat/completions", "completions", "embeddings", "rerank", "reranking", "responses", "messages",
    "messages/count_tokens", "audio/transcriptions", "audio/translations", "audio/speech",
    "images/generations", "images/edits", "images/variations", "inference", "inference/stream",
}


def blueprint(model_optional: bool) -> Blueprint:
    """The routes; with ``model_optional`` a request without a model means the default one."""
    bp = Blueprint("openai", __name__)
    chat_view = ChatView() if model_optional else NamedChatView()
    completion_view = CompletionView()
    any_view = AnyView()

    @bp.get("/models")
    @bp.get("/v1/models")
    def models() -> Response:
        """Every model of the registry."""
        models = [_object(entry) for entry in services().entries()]
        return json_response({"object": "list", "data": models})

    @bp.get("/v1/models/<path:name>")
    def model(name: str) -> Response:
        """One model; its name may hold slashes, encoded or not."""
        return json_response(_object(services().entry(name)))

    @bp.post("/v1/chat/completions", provide_automatic_options=False)
    def chat() -> Response:
        """A chat completion by the engine that serves the model, whole or as a stream."""
        return _passed(one_limit(read_json(chat_view)))

    @bp.post("/v1/completions")
    def completions() -> Response:
        """A text completion, likewise."""
        return _passed(one_limit(read_json(completion_view)))

    @any_method(bp, "/v1/<path:rest>")
    def any_endpoint(rest: str) -> Response:
        """Any other endpoint of the engine that serves the model in the body (JSON or form)."""
        _require_post(rest)
        if rest in ENDPOINTS:
            record().route = f"/v1/{rest}"
        if request.method == "OPTIONS":
            return Response(headers={"Allow": ", ".join(_POST)})
        return _passed(read_any(any_view))

    return bp


def _passed(body: JsonBody | FormBody) -> Response:
    """The engine's answer to the body, as it is."""
    reply = services().gateway.call(call_of(body, **body.facts))
    return response_of(reply, parts=body.parts)


def _object(entry: Entry) -> dict[str, Any]:
    gateway = services().gateway
    engine = gateway.engine_facts(entry.name, ask=False)
    return model_object(services().facts.of_model(entry), gateway.status.of(entry.name), engine)


def _require_post(rest: str) -> None:
    """Raise the error for a method that the endpoint does not have: there is no GET of unknowns."""
    if rest.partition("/")[0] == "models" and request.method not in ("GET", "HEAD"):
        raise MethodNotAllowed(_GET)
    if request.method not in _POST or (request.method == "OPTIONS" and rest not in ENDPOINTS):
        raise MethodNotAllowed(_POST) if rest in ENDPOINTS else NotFound()
