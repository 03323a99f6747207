"""POST /api/chat and POST /api/generate, and loading and unloading by them."""

from datetime import datetime, timezone
from functools import partial
from typing import Any

from flask import Response

from app.api.http import json_response, services
from app.api.ollama import recall
from app.api.ollama.answer import chat_lines, generate_lines
from app.api.ollama.reading import read_call
from app.api.ollama.refusal import Refusal, invalid
from app.api.ollama.rendering import JSON, answer_of, arrived, rendered
from app.api.ollama.request import chat as chat_request
from app.api.ollama.request import generate as generate_request
from app.api.ollama.request import keep_alive, probabilities
from app.api.ollama.request.fields import flag, objects, text
from app.api.ollama.sending import Sender
from app.api.ollama.target import Target, target_of

_NO_MODEL = Refusal(404, "model '' not found")


def chat() -> Response:
    """A chat, or without messages the loading or unloading of the model."""
    arrived()
    fields = read_call()
    top = probabilities.asked(fields)
    target = target_of(fields, empty=invalid("model is required"))
    if not objects(fields.get("messages"), "messages"):
        return _loaded(fields, target, {"message": {"role": "assistant", "content": ""}})
    target.require_chat(fields)
    ask = chat_request.ask(fields, target.facts, target.thinks)
    reply = Sender(target).send(ask, flag(fields.get("truncate"), "truncate", True))
    lines = chat_lines(reply.pieces, answer_of(reply, ask, target, top_logprobs=top))
    return _kept(rendered(reply, lines, _streams(fields)), fields, target)


def generate() -> Response:
    """An answer to a prompt, or without one the loading or unloading of the model."""
    arrived()
    fields = read_call()
    top = probabilities.asked(fields)
    target = target_of(fields, empty=_NO_MODEL)
    if not text(fields.get("prompt"), "prompt") and not fields.get("suffix"):
        return _loaded(fields, target, {"response": ""})
    target.require_generate(fields)
    ask = generate_request.ask(fields, target.facts, target.thinks)
    sender = Sender(target)
    reply = sender.send(ask, truncate=True)
    context = recall.of(fields, ask, target, sender)
    answer = answer_of(reply, ask, target, top_logprobs=top, context=context)
    lines = generate_lines(reply.pieces, answer)
    return _kept(rendered(reply, lines, _streams(fields)), fields, target)


def _streams(fields: dict[str, Any]) -> bool:
    return flag(fields.get("stream"), "stream", True)


def _keep(fields: dict[str, Any]) -> float:
    return keep_alive.of(fields, services().gateway.keep_alive)


def _kept(response: Response, fields: dict[str, Any], target: Target) -> Response:
    """The response, at whose end the time begins for which the model stays loaded."""
    keep = partial(services().gateway.keep, target.name, _keep(fields))
    response.call_on_close(keep)
    return response


def _loaded(fields: dict[str, Any], target: Target, said: dict[str, Any]) -> Response:
    """One object, never a stream: the model is loaded, or with a keep_alive of zero unloaded.

    The engine runs by itself: loading is to see that it is there, unloading to forget its use.
    """
    keep = _keep(fields)
    if keep:
        Sender(target).require_engine()
    services().gateway.keep(target.name, keep)
    now = datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    reason = "load" if keep else "unload"
    return json_response(
        {"model": target.asked, "created_at": now, **said, "done": True, "done_reason": reason},
        JSON,
    )
