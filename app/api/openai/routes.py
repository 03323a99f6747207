"""The OpenAI API under /v1."""

from flask import Blueprint, Response

from app.api.body import read_json
from app.api.http import call_of, json_response, response_of, services
from app.api.openai.response import model_object
from app.api.openai.schemas import ChatView
from app.errors import GatewayError, Kind

_UNSUPPORTED = "'stream' is not supported by this gateway version"


def blueprint(model_optional: bool) -> Blueprint:
    """The routes; with ``model_optional`` a request without a model means the default one."""
    bp = Blueprint("openai", __name__, url_prefix="/v1")
    chat_view = ChatView(partial=("model",) if model_optional else None)

    @bp.get("/models")
    def models() -> Response:
        """Every model of the registry."""
        entries = services().registry.entries()
        return json_response({"object": "list", "data": [model_object(e) for e in entries]})

    @bp.get("/models/<path:name>")
    def model(name: str) -> Response:
        """One model; its name may hold slashes, encoded or not."""
        entry = services().registry.find(name)
        if entry is None:
            raise GatewayError.unknown_model(name)
        return json_response(model_object(entry))

    @bp.post("/chat/completions")
    def chat() -> Response:
        """A chat completion by the engine that serves the model."""
        body = read_json(chat_view)
        if body.fields.get("stream"):
            raise GatewayError(Kind.INVALID_FIELD, _UNSUPPORTED, param="stream")
        return response_of(services().gateway.call(call_of(body)))

    return bp
