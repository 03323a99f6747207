"""What a request has until it is answered: its place, taken before it may wait for anything."""

from contextlib import AbstractContextManager, ExitStack

from flask import Flask, Response, current_app, g

from app.api.security import count_call
from app.api.services import Services
from app.places import Places


def take_place() -> None:
    """Take a place for the request, unless it has one; raises GatewayError where none is free.

    Or where the caller's key has as many calls as it may have.
    """
    if "places" not in g:
        count_call()
        services: Services = current_app.extensions["loop"]
        services.gateway.places.take()
        g.places = services.gateway.places


def take_aside() -> None:
    """A place for what may take hours and asks no engine: one of a few of its own.

    Where those are taken it takes one of the calls' places; raises GatewayError as ``take_place``.
    """
    transfers: Places = current_app.extensions["loop"].gateway.transfers
    if "places" not in g and transfers.try_take():
        g.places = transfers
    else:
        take_place()


def keep(context: AbstractContextManager[object]) -> None:
    """Enter the context, and leave it when the request's response is done with."""
    if "kept" not in g:
        g.kept = ExitStack()
    g.kept.enter_context(context)


def register(app: Flask) -> None:
    """Let every response, an error or not, end what its request has when it is done with."""

    @app.after_request
    def give_back(response: Response) -> Response:
        if "places" in g:
            response.call_on_close(g.places.give_back)
        if "kept" in g:
            response.call_on_close(g.kept.close)
        return response
