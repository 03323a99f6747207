"""What browsers are kept from, and what their pages are let do: Host, Origin, CORS."""

from dataclasses import dataclass
from typing import Any

from flask import Flask, Response, request
from flask_cors import cross_origin

from app.errors import GatewayError, Kind
from app.hosts import AllowedHosts
from app.origins import AllowedOrigins

_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]
_READABLE = [
    "X-Request-Id", "Retry-After", "WWW-Authenticate", "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests",
]
_MAX_AGE = 43200  # s; half a day, as in Ollama


@dataclass(frozen=True)
class Browsers:
    """The names that the gateway answers to, and the origins whose pages may call it."""

    hosts: AllowedHosts
    origins: AllowedOrigins

    def check(self, environ: dict[str, Any]) -> Response | None:
        """Raise GatewayError for a name or an origin that is not allowed.

        A preflight is answered here, whatever its URL: it carries no key, and no engine sees it.
        """
        host = environ.get("HTTP_HOST", "")
        if not self.hosts.allows(host):
            text = "the gateway is not known by this name; server.allowed-hosts has those it is"
            raise GatewayError(Kind.HOST_NOT_ALLOWED, text)
        origin = environ.get("HTTP_ORIGIN")
        if origin is None:
            return None
        if not self.origins.allows(origin, host):
            text = "pages of this origin may not call the gateway; server.cors-origins has others"
            raise GatewayError(Kind.ORIGIN_NOT_ALLOWED, text)
        return _empty() if _is_preflight(environ) else None


def register(app: Flask, origins: AllowedOrigins) -> None:
    """Let pages of allowed origins read every response, an error or not."""
    # Not the extension for a whole app, which takes its time for requests without an origin too.
    @cross_origin(
        origins="*" if origins.every else list(origins.regexes), methods=_METHODS,
        expose_headers=_READABLE, max_age=_MAX_AGE, send_wildcard=True, automatic_options=False,
    )
    def readable(response: Response) -> Response:
        return response

    @app.after_request
    def allow(response: Response) -> Response:
        return readable(response) if "HTTP_ORIGIN" in request.environ else response


def _is_preflight(environ: dict[str, Any]) -> bool:
    asks = "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in environ
    return asks and environ["REQUEST_METHOD"] == "OPTIONS"


def _empty() -> Response:
    response = Response(status=204)
    del response.headers["Content-Type"]
    return response
