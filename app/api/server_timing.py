"""The header Server-Timing: where a request's time went (w3.org/TR/server-timing)."""

from flask import Flask, Response

from app.api.recording import record


def register(app: Flask) -> None:
    """Let every response, an error or not, say it."""

    @app.after_request
    def say(response: Response) -> Response:
        found = record()
        response.headers["Server-Timing"] = (
            f"queue;dur={1000 * found.queue:.1f}, load;dur={1000 * found.load:.1f}, "
            f"engine;dur={1000 * found.answering:.1f}"
        )
        return response
