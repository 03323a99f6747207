"""Juno's own API: POST /v1/inference and POST /v1/inference/stream."""

from flask import Blueprint, Response

from app.api.errors import render
from app.api.http import services
from app.api.juno import ask
from app.api.juno.rendering import as_stream, whole
from app.api.juno.schemas import InferenceView, NamedInferenceView
from app.errors import GatewayError


def blueprint(model_optional: bool) -> Blueprint:
    """The routes; with ``model_optional`` a request without a model means the default one."""
    bp = Blueprint("juno", __name__)
    view = InferenceView() if model_optional else NamedInferenceView()

    @bp.post("/v1/inference")
    def inference() -> Response:
        """An answer as one object."""
        asked = ask.read(view, stream=False)
        return whole(services().gateway.call(asked.call), asked)

    @bp.post("/v1/inference/stream")
    def inference_stream() -> Response:
        """An answer as it comes."""
        asked = ask.read(view, stream=True)
        return as_stream(services().gateway.call(asked.call), asked)

    bp.register_error_handler(GatewayError, _refused)
    return bp


def _refused(error: GatewayError) -> Response:
    """The error, with Juno's name for the field that the gateway calls ``model``."""
    error.param = "modelId" if error.param == "model" else error.param
    return render(error)
