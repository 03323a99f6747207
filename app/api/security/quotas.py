"""What the caller's key may use up: requests in a time, and calls at a time."""

import math
from dataclasses import dataclass

from flask import Flask, Response, current_app, g

from app.api.security.principal import principal
from app.api.security.rates import Concurrency, Rates
from app.api.security.standing import Standing
from app.errors import GatewayError, Kind

_PREFIX = "x-ratelimit-"
_LIMIT, _REMAINING, _RESET = (
    f"{_PREFIX}{name}-requests" for name in ("limit", "remaining", "reset"))


@dataclass(frozen=True)
class Quotas:
    """The counters of all keys."""

    rates: Rates
    concurrency: Concurrency


def count_request() -> None:
    """Count the request against the rate of its key; raises GatewayError where it is too much."""
    who = principal()
    if who.rate is None:
        return
    g.standing = standing = _quotas().rates.count(who.name, who.rate)
    if standing.exceeded:
        text = f"the requests of the key '{who.name}' are limited to {who.rate}"
        raise GatewayError(Kind.RATE_LIMITED, text, wait=standing.reset)


def count_call() -> None:
    """Count a call against the concurrency of its key until the request is answered, once.

    Raises GatewayError where there are too many already.
    """
    who = principal()
    if who.concurrency is not None and "counted" not in g:
        _quotas().concurrency.take(who.name, who.concurrency)
        g.counted = who.name


def register(app: Flask, quotas: Quotas) -> None:
    """Let every response, an error or not, tell what is left, and end what its request counted."""
    app.extensions["quotas"] = quotas

    @app.after_request
    def finish(response: Response) -> Response:
        if "counted" in g:
            name = g.counted
            response.call_on_close(lambda: quotas.concurrency.give_back(name))
        if "standing" in g:
            _tell(g.standing, response)
        return response


def _tell(standing: Standing, response: Response) -> None:
    """Add OpenAI's headers, unless an engine speaks of a limit of its own."""
    headers = response.headers
    if not any(name.lower().startswith(_PREFIX) for name, _ in headers):
        headers.add_header(_LIMIT, str(standing.limit))
        headers.add_header(_REMAINING, str(standing.remaining))
        headers.add_header(_RESET, f"{math.ceil(standing.reset)}s")


def _quotas() -> Quotas:
    found: Quotas = current_app.extensions["quotas"]
    return found
