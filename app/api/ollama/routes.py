"""The Ollama API under /api, and the line by which clients know an Ollama server."""

from typing import Any

from flask import Blueprint, Response, request
from werkzeug.exceptions import NotFound

from app.api.http import json_response, services
from app.api.ollama import account, embedding, generation, objects, running
from app.api.ollama.reading import read_fields
from app.api.ollama.refusal import Refusal
from app.api.ollama.registry import blobs, changing, creating, pulling
from app.api.ollama.schemas import ShowView
from app.api.ollama.show import Asked, show as show_object
from app.catalog.facts import ModelFacts
from app.catalog.file_facts import read_with_arrays
from app.catalog.manifest import Entry
from app.errors import GatewayError, Kind


class _Routes(Blueprint):
    """Routes that a trailing slash leads to as well.

    Ollama redirects there (gin, RedirectTrailingSlash), but many clients repeat no POST elsewhere.
    """

    def add_url_rule(self, *args: Any, **options: Any) -> None:
        super().add_url_rule(*args, **{"strict_slashes": False, **options})


def blueprint(release: str) -> Blueprint:
    """The routes; ``release`` is that of Ollama whose API this is. Flask adds HEAD to every GET."""
    bp = _Routes("ollama", __name__)
    show_view = ShowView()
    tag_list = objects.TagList()

    @bp.get("/")
    def alive() -> Response:
        """What an Ollama server says of itself."""
        if request.environ["PATH_INFO"] != "/":
            raise NotFound()
        return Response("Ollama is running", content_type="text/plain; charset=utf-8")

    @bp.get("/api/version")
    def version() -> Response:
        """The Ollama release whose API this is."""
        return json_response({"version": release})

    @bp.get("/api/tags")
    def tags() -> Response:
        """Every model of the registry, sorted by name."""
        models = map(services().facts.of_model, services().entries())
        return Response(tag_list.document(models), content_type="application/json")

    @bp.post("/api/show")
    def show() -> Response:
        """What the registry, the model's files and its engine say about one model."""
        fields = read_fields(show_view)
        name = _name(fields)
        entry = services().entry(name)
        arrays = read_with_arrays(entry.first_file) if fields.get("verbose") else None
        asked = Asked(name, request.headers.get("User-Agent", ""), arrays)
        engine = services().gateway.engine_facts(entry.name)
        return json_response(show_object(_model(entry), asked, engine))

    _add_calls(bp)
    account.add_routes(bp)
    bp.register_error_handler(Refusal, _refused)
    return bp


def _add_calls(bp: Blueprint) -> None:
    """Add what is asked of engines, and what is done to models."""
    bp.add_url_rule("/api/ps", view_func=running.ps, methods=["GET"])
    bp.add_url_rule("/api/chat", view_func=generation.chat, methods=["POST"])
    bp.add_url_rule("/api/generate", view_func=generation.generate, methods=["POST"])
    bp.add_url_rule("/api/embed", view_func=embedding.embed, methods=["POST"])
    bp.add_url_rule("/api/embeddings", view_func=embedding.embeddings, methods=["POST"])
    bp.add_url_rule("/api/pull", view_func=pulling.pull, methods=["POST"])
    bp.add_url_rule("/api/create", view_func=creating.create, methods=["POST"])
    bp.add_url_rule("/api/push", view_func=changing.push, methods=["POST"])
    bp.add_url_rule("/api/copy", view_func=changing.copy, methods=["POST"])
    bp.add_url_rule("/api/delete", view_func=changing.delete, methods=["DELETE"])
    bp.add_url_rule("/api/blobs/<digest>", view_func=blobs.blob, methods=["HEAD", "POST"])


def _refused(refusal: Refusal) -> Response:
    response = json_response({"error": refusal.text})
    response.status_code = refusal.status
    if refusal.retry_after:
        response.headers["Retry-After"] = refusal.retry_after
    return response


def _name(fields: dict[str, Any]) -> str:
    """The model's name as the client has it; ``name`` is the older word."""
    name = str(fields.get("model") or fields.get("name") or "")
    if not name.strip():
        raise GatewayError(Kind.INVALID_FIELD, "model is required", param="model")
    return name


def _model(entry: Entry) -> ModelFacts:
    return services().facts.of_model(entry)
