"""The Ollama API under /api, and the line by which clients know an Ollama server."""

from datetime import datetime, timezone
from typing import Any

from flask import Blueprint, Response, request
from werkzeug.exceptions import NotFound

from app.api.body import read_aside
from app.api.http import json_response, services
from app.api.ollama import objects
from app.api.ollama.schemas import ShowView
from app.api.ollama.show import Asked, show as show_object
from app.catalog.facts import ModelFacts
from app.catalog.file_facts import read_with_arrays
from app.catalog.manifest import Entry
from app.errors import GatewayError, Kind

VERSION = "0.33.0"  # the Ollama release whose API this is; clients compare it number by number


def blueprint() -> Blueprint:
    """The routes; Flask answers HEAD wherever there is a GET."""
    bp = Blueprint("ollama", __name__)
    show_view = ShowView()
    tag_list = objects.TagList()

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
        """Every model of the registry, sorted by name."""
        models = map(services().facts.of_model, services().registry.entries())
        return Response(tag_list.document(models), content_type="application/json")

    @bp.post("/api/show")
    def show() -> Response:
        """What the registry, the model's files and its engine say about one model."""
        fields = read_aside(show_view, empty="missing request body").fields
        name = _name(fields)
        entry = services().entry(name)
        arrays = read_with_arrays(entry.first_file) if fields.get("verbose") else None
        asked = Asked(name, request.headers.get("User-Agent", ""), arrays)
        return json_response(show_object(_model(entry), asked))

    @bp.get("/api/ps")
    def ps() -> Response:
        """The models that count as loaded; the one that stays longest comes first."""
        now = datetime.now(timezone.utc)
        loaded = services().gateway.loaded().items()
        ends = {name: objects.expiry(until, now) for name, until in loaded}
        names = sorted(ends, key=lambda name: ends[name], reverse=True)
        found = ((services().registry.find(name), ends[name]) for name in names)
        models = [objects.running(_model(entry), end) for entry, end in found if entry]
        return json_response({"models": models})

    return bp


def _name(fields: dict[str, Any]) -> str:
    """The model's name as the client has it; ``name`` is the older word."""
    name = str(fields.get("model") or fields.get("name") or "")
    if not name.strip():
        raise GatewayError(Kind.INVALID_FIELD, "model is required", param="model")
    return name


def _model(entry: Entry) -> ModelFacts:
    return services().facts.of_model(entry)
