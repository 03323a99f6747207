"""GET /engines: what every engine is doing."""

from typing import Any

from flask import Blueprint, Response

from app.api.http import json_response, services
from app.jsontext import timestamp
from app.model_status import EngineStatus, ManagedStatus


def blueprint() -> Blueprint:
    """The route."""
    bp = Blueprint("engines", __name__)

    @bp.get("/engines")
    def engines() -> Response:
        """State, slots, queue, strikes and last error of each engine; asks none of them."""
        gateway = services().gateway
        budget, used = gateway.memory()
        found = [_engine(engine) for engine in gateway.status.engines()]
        return json_response({"memory_budget": budget, "memory_used": used, "engines": found})

    return bp


def _engine(engine: EngineStatus) -> dict[str, Any]:
    return {
        "id": engine.id,
        "kind": "managed" if engine.managed else "attached",
        "models": list(engine.models),
        "state": engine.state,
        "slots": engine.slots,
        "running": engine.running,
        "queued": engine.queued,
        "strikes": engine.strikes,
        "last_error": engine.last_error,
        **(_managed(engine.managed) if engine.managed else {}),
    }


def _managed(managed: ManagedStatus) -> dict[str, Any]:
    until = managed.idle_until
    return {
        "url": managed.url,
        "pid": managed.pid,
        "memory_estimate": managed.memory_estimate,
        "memory": managed.memory,
        "idle_until": timestamp(until) if until else None,
        "starts": managed.starts,
    }
