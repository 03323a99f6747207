"""The header Server-Timing: where a request's time went."""

from flask import Flask, Response

from app.api.recording import record


def register(app: Flask) -> None:
    """Let every response, an error or not, say it."""

    @app.after_request
    def say(response: Response) -> Response:
        response.headers["Server-Timing"] = record().server_timing()
        return response
