"""GET /openapi.json: the description of all of this."""

from functools import cache

from flask import Blueprint, Response, current_app

from app import jsontext


def blueprint(model_optional: bool) -> Blueprint:
    """The route; ``model_optional`` is that of the APIs which it describes."""
    bp = Blueprint("openapi", __name__)

    @cache
    def made() -> bytes:
        # Not at the start of the gateway: few ask for it, and apispec takes its time.
        from app.api.openapi.document import document
        return jsontext.encode(document(current_app, model_optional))

    @bp.get("/openapi.json")
    def openapi() -> Response:
        """The OpenAPI document."""
        return Response(made(), content_type="application/json")

    return bp
