"""The gateway's own routes."""

from flask import Blueprint, Response

from app.api.http import json_response


def blueprint() -> Blueprint:
    """The routes."""
    bp = Blueprint("ops", __name__)

    @bp.get("/health")
    def health() -> Response:
        """That the gateway answers; says nothing of its engines."""
        return json_response({"status": "ok"})

    return bp
