"""The header Server-Timing: where a request's time went (w3.org/TR/server-timing)."""

from flask import Flask, Response, g

from app.call import Timing


def timing() -> Timing:
    """The current request's times, for the gateway to add to."""
    if "timing" not in g:
        g.timing = Timing()
    found: Timing = g.timing
    return found


def register(app: Flask) -> None:
    """Let every response, an error or not, say it."""

    @app.after_request
    def say(response: Response) -> Response:
        found = timing()
        response.headers["Server-Timing"] = (
            f"queue;dur={1000 * found.queue:.1f}, load;dur={1000 * found.load:.1f}, "
            f"engine;dur={1000 * found.engine:.1f}"
        )
        return response
