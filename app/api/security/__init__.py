"""Who may do what: every request is checked here before anything else looks at it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from flask import Flask, Response, g, request

from app.api.recording import record
from app.api.security import browsers, quotas
from app.api.security.browsers import Browsers
from app.api.security.presented import presented_key
from app.api.security.principal import authorised, permit, principal, require
from app.api.security.quotas import Quotas, count_call, count_request
from app.api.security.scopes import needed
from app.errors import GatewayError, Kind
from app.keys import ANYONE, KeyRing

__all__ = ["Guard", "authorised", "count_call", "permit", "principal", "register", "require"]


@dataclass(frozen=True)
class Guard:
    """What decides: from where it may be asked, by whom, how often. ``clock`` gives the time."""

    browsers: Browsers
    keys: KeyRing
    quotas: Quotas
    clock: Callable[[], datetime]

    def admit(self) -> Response | None:
        """Find out who makes the current request; raises GatewayError where it may not be made.

        The response is that to a preflight, which is complete with it.
        """
        answered = self.browsers.check(request.environ)
        if answered:
            return answered
        if not self.keys:
            g.principal = ANYONE
            return None
        scope = needed(request.method, request.path)
        if scope is not None:
            holder = self.keys.holder(presented_key(request.environ), self.clock())
            if holder is None:
                raise GatewayError(Kind.UNAUTHORIZED, "the API key is not valid")
            g.principal = holder
            record().principal = holder.name
            count_request()
            require(scope)
        return None


def register(app: Flask, guard: Guard) -> None:
    """Let every request be admitted first; what others register before this comes before it."""
    app.before_request(guard.admit)
    quotas.register(app, guard.quotas)
    browsers.register(app, guard.browsers.origins)
