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
from app.api.ollama.rendering import JSON, Held, answer_of, rendered
from app.api.ollama.request import chat as chat_request
from app.api.ollama.request import generate as generate_request
from app.api.ollama.request import keep_alive, probabilities
from app.api.ollama.request.fields import flag, objects, text
from app.api.ollama.sending import Sender
from app.api.ollama.target import Target, ready, target_of
from app.api.recording import record
from app.api.security import require
from app.keys import Scope

_NO_MODEL = Refusal(404, "model '' not found")


def chat() -> Response:
    """A chat, or without messages the loading or unloading of the model."""
    fields = read_call()
    top = probabilities.asked(fields)
    target = target_of(fields, empty=invalid("model is required"))
    keep, stream = keep_alive.of(fields), flag(fields.get("stream"), "stream", True)
    truncate = flag(fields.get("truncate"), "truncate", True)
    if not objects(fields.get("messages"), "messages"):
        return _loaded(target, keep, {"message": {"role": "assistant", "content": ""}})
    target = ready(target)
    fields = target.modelfile.for_chat(fields)
    target.require_chat(fields)
    ask = chat_request.ask(fields, target.facts, target.thinks)
    sender = Sender(target)
    reply = sender.send(sender.completed(ask), truncate)
    tags = _may_hold_thoughts(fields, target)
    answer = answer_of(reply, ask, target, top_logprobs=top, think_tags=tags)
    lines = chat_lines(reply.pieces, answer)
    return _kept(rendered(Held(reply), lines, stream), target, keep)


def generate() -> Response:
    """An answer to a prompt, or without one the loading or unloading of the model."""
    fields = read_call()
    top = probabilities.asked(fields)
    target = target_of(fields, empty=_NO_MODEL)
    keep, stream = keep_alive.of(fields), flag(fields.get("stream"), "stream", True)
    truncate = flag(fields.get("truncate"), "truncate", True)
    if not text(fields.get("prompt"), "prompt") and not fields.get("suffix"):
        return _loaded(target, keep, {"response": ""})
    target = ready(target)
    fields = target.modelfile.for_generate(fields)
    target.require_generate(fields)
    ask = generate_request.ask(fields, target.facts, target.thinks)
    sender = Sender(target)
    ask = sender.completed(ask)
    reply = sender.send(ask, truncate)
    held = Held(reply)
    context = recall.of(fields, ask, target, sender, held)
    tags = _may_hold_thoughts(fields, target)
    answer = answer_of(reply, ask, target, top_logprobs=top, context=context, think_tags=tags)
    lines = generate_lines(reply.pieces, answer)
    return _kept(rendered(held, lines, stream), target, keep)


def _may_hold_thoughts(fields: dict[str, Any], target: Target) -> bool:
    """Whether <think>…</think> in the text is thinking: a llama-server parts the two itself."""
    plain = fields.get("think") is False or fields.get("raw") or fields.get("suffix")
    return not target.facts.is_llama_server and not plain


def _kept(response: Response, target: Target, keep: float | None) -> Response:
    """The response, at whose end the time begins for which the model stays loaded."""
    began = record().began
    response.call_on_close(partial(services().gateway.keep, target.name, keep, began))
    return response


def _loaded(target: Target, keep: float | None, said: dict[str, Any]) -> Response:
    """One object, never a stream: the model is loaded, or with a keep_alive of zero unloaded.

    Of an engine that runs by itself, loading is to see that it is there, unloading to forget its
    use. Blocks until the model is loaded; unloading ends with the calls that run.
    """
    if keep != 0:
        Sender(target).require_engine()
        services().gateway.keep(target.name, keep, record().began)
    else:
        require(Scope.ADMIN)
        services().gateway.unload(target.name)
    now = datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    reason = "unload" if keep == 0 else "load"
    return json_response(
        {"model": target.asked, "created_at": now, **said, "done": True, "done_reason": reason},
        JSON,
    )
