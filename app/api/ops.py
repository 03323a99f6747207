"""The gateway's own routes."""

from flask import Blueprint, Response

from app.api.http import json_response, services


def blueprint() -> Blueprint:
    """The routes."""
    bp = Blueprint("ops", __name__)

    @bp.get("/health")
    def health() -> Response:
        """That the gateway answers, or that it is about to end; says nothing of its engines."""
        if not services().gateway.places.closed:
            return json_response({"status": "ok"})
        response = json_response({"status": "stopping"})
        response.status_code = 503
        return response

    return bp
