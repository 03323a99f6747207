"""What Ollama's desktop app asks of its server beside models: there is no account here."""

from flask import Blueprint, Response

from app.api.http import json_response
from app.api.ollama.refusal import Refusal


def add_routes(bp: Blueprint) -> None:
    """Add the routes to the Ollama blueprint."""

    @bp.get("/api/status")
    def status() -> Response:
        """That no models of Ollama's cloud are to be had."""
        return json_response({"cloud": {"disabled": True, "source": "gateway"}})

    @bp.post("/api/me")
    def me() -> Response:
        """Nobody is signed in."""
        raise Refusal(401, "unauthorized")

    @bp.post("/api/signout")
    @bp.delete("/api/user/keys/<key>")
    def sign_out(key: str = "") -> Response:
        """Nobody is, so nobody can leave."""
        raise Refusal(401, "you are not currently signed in")

    @bp.get("/api/experimental/model-recommendations")
    def recommendations() -> Response:
        """None: the registry is filled elsewhere."""
        return json_response({"recommendations": []})
