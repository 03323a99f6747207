"""Who makes the current request, and what that one may do."""

from dataclasses import replace

from flask import g

from app.call import Call
from app.errors import GatewayError, Kind
from app.gateway import Gateway
from app.keys import NOBODY, Principal, Scope


def principal() -> Principal:
    """Who makes the current request, as the key was found good."""
    found: Principal = g.get("principal", NOBODY)
    return found


def require(scope: Scope) -> None:
    """Raise GatewayError where the caller's key does not have the scope."""
    who = principal()
    if scope not in who.scopes:
        text = f"the key '{who.name}' lacks the scope '{scope.value}' that this takes"
        raise GatewayError(Kind.SCOPE_MISSING, text)


def permit(model: str | None, gateway: Gateway) -> str | None:
    """The name for a call of a model that the caller means by ``model``; raises GatewayError.

    Neither an alias nor another spelling leads past the key's globs, because what they are
    compared with is the registry's name. None means the default model, which is given by name:
    another caller may have changed it a moment later.
    """
    who = principal()
    if who.every_model:
        return model
    name = gateway.resolve(model)
    if who.allows(name):
        return name if model is None else model
    meant = "the default model" if model is None else f"the model '{model}'"
    text = f"the key '{who.name}' may not use {meant}"
    raise GatewayError(Kind.MODEL_NOT_ALLOWED, text, param="model", model=model)


def authorised(call: Call, gateway: Gateway) -> Call:
    """The call in its principal's name, no more urgent than that one may ask; raises GatewayError.

    Where there are no keys it stays as it is.
    """
    who = principal()
    if not who.name:
        return call
    model, priority = permit(call.model, gateway), max(call.priority, who.max_priority)
    return replace(call, caller=who.name, model=model, priority=priority)
