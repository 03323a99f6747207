"""The Ollama API under /api, and the line by which clients know an Ollama server."""

from typing import Any

from flask import Blueprint, Response, request
from werkzeug.exceptions import NotFound

from app.api.body import read_aside
from app.api.http import json_response, services
from app.api.ollama import response
from app.api.ollama.schemas import ShowView
from app.catalog.facts import Facts
from app.catalog.manifest import Entry
from app.errors import GatewayError, Kind

VERSION = "0.33.0"  # the Ollama release whose API this is; clients compare it number by number


def blueprint() -> Blueprint:
    """The routes; Flask answers HEAD wherever there is a GET."""
    bp = Blueprint("ollama", __name__)
    show_view = ShowView()

    @bp.get("/", strict_slashes=False)  # else "//" is redirected, with a page of HTML
    def alive() -> Response:
        """What an Ollama server says of itself."""
        if request.environ["PATH_INFO"] != "/":
            raise NotFound()
        return Response("Ollama is running", content_type="text/plain; charset=utf-8")

    @bp.get("/api/version")
    def version() -> Response:
        """The Ollama release whose API this is."""
        return json_response({"version": VERSION})

    @bp.get("/api/tags")
    def tags() -> Response:
        """Every model of the registry."""
        models = [response.tag(e, _facts(e)) for e in services().registry.entries()]
        return json_response({"models": models})

    @bp.post("/api/show")
    def show() -> Response:
        """What the registry and the model's file say about one model."""
        entry = _entry(read_aside(show_view, empty="missing request body").fields)
        return json_response(response.show(entry, _facts(entry)))

    @bp.get("/api/ps")
    def ps() -> Response:
        """The models that count as loaded."""
        loaded = services().gateway.loaded().items()
        found = ((services().registry.find(name), until) for name, until in loaded)
        models = [response.running(e, _facts(e), until) for e, until in found if e]
        return json_response({"models": models})

    return bp


def _entry(fields: dict[str, Any]) -> Entry:
    name = fields.get("model") or fields.get("name") or ""
    if not name.strip():
        raise GatewayError(Kind.INVALID_FIELD, "model is required", param="model")
    return services().entry(name)


def _facts(entry: Entry) -> Facts:
    return services().facts.of(entry.first_file)
