"""Sends what an Ollama request became to the engine, and tells its refusals in Ollama's way."""

import re
from dataclasses import replace
from typing import Any

from app import jsontext
from app.api.http import call_of, services
from app.api.ollama.refusal import Refusal, invalid, quoted
from app.api.ollama.request import chat
from app.api.ollama.request.ask import Ask, Lookup
from app.api.ollama.target import Target
from app.api.payload import JsonBody, OpaqueBody
from app.call import Passing, Reply
from app.engine_message import message
from app.errors import GatewayError, Kind

TOO_LONG = (
    "the prompt is longer than the context length currently available to the model; shorten the "
    "prompt, adjust the context length in settings, or use a model with a longer context length"
)
_ATTEMPTS = 8  # at leaving old messages out
_KEY_REFUSED = (401, 403)
_PATIENCE = 2.0  # s; what is only good to know is not worth more
# An engine says 500 to requests that are the client's fault; these are.
_CLIENTS_FAULT = re.compile(
    "(image|audio) input is not supported|Failed to parse|Unsupported|Unable to generate parser|"
    r"\s*-+\s*While executing"  # a template that raises: roles in an order it does not take
)


class Sender:
    """Reaches the engine of one model on behalf of one request, also while its answer streams."""

    def __init__(self, target: Target) -> None:
        """Takes what it needs of the current request, and a place for it."""
        self._target = target
        self._gateway = services().gateway
        self._call = call_of(OpaqueBody(), model=target.name, method="POST", accept="*/*",
                             passing=Passing.STATUSES)

    def send(self, ask: Ask, truncate: bool = False) -> Reply:
        """The engine's good answer; whoever gets it closes it.

        Blocks as ``Gateway.call`` does. Raises GatewayError and Refusal. With ``truncate``, a chat
        that is too long is sent again without its oldest messages.
        """
        for _ in range(_ATTEMPTS):
            reply = self.post(ask.target, ask.body)
            if reply.successful:
                return reply
            error = _error_of(reply)
            shorter = _shorter(ask, error) if truncate else None
            if shorter is None:
                raise _refusal(reply, error, self._target)
            ask = shorter
        raise invalid(TOO_LONG)

    def completed(self, ask: Ask) -> Ask:
        """The ask with what has to be looked up in its prompt.

        Blocks; raises GatewayError, and Refusal where a trial of its fails.
        """
        for trial in ask.trials:
            self._try(trial)
        if ask.lookups:
            ask = ask.completed([self.look_up(each.target, each.body, each.key)
                                 for each in ask.lookups])
        return ask.unopened() if ask.opening and self._opens_with(ask.opening) else ask

    def post(self, path: str, body: dict[str, Any], limit: float | None = None) -> Reply:
        """POST ``body`` for the model; any status is an answer. Blocks and raises GatewayError.

        ``limit`` is that of Call.
        """
        fields = {"model": self._target.name, **body}
        raw = JsonBody(jsontext.encode(fields), fields)
        return self._gateway.call(replace(self._call, target=path, body=raw, limit=limit))

    def look_up(
        self, path: str, body: dict[str, Any], key: str, limit: float | None = None
    ) -> Any:
        """What stands under ``key`` in the answer to a small question. Raises GatewayError.

        With a ``limit`` (seconds) an engine that is silent for so long does not answer it, and one
        is not asked at all when it has run out.
        """
        if limit is not None and limit <= 0:
            raise GatewayError(Kind.ENGINE_TIMEOUT, f"there is no time left to ask {path}")
        reply = self.post(path, body, limit)
        try:
            found = jsontext.decode(reply.body) if reply.successful else None
        except jsontext.JsonError:
            found = None
        finally:
            reply.close()
        if not isinstance(found, dict) or key not in found:
            raise GatewayError(Kind.UPSTREAM_ERROR, f"the engine did not answer {path}")
        return found[key]

    def _try(self, trial: Lookup) -> None:
        """Raise Refusal where the engine refuses the schema in it; nothing else is of interest."""
        reply = self.post(trial.target, trial.body)
        if reply.successful:
            reply.close()
            return
        error = _error_of(reply)
        if "schema" in error["message"].lower():
            raise _refusal(reply, error, self._target)

    def _opens_with(self, opening: str) -> bool:
        """Whether the engine itself begins every prompt with this token."""
        body = {"content": opening, "add_special": True}
        try:
            tokens = self.look_up("/tokenize", body, "tokens", limit=_PATIENCE)
        except GatewayError:
            return False
        return isinstance(tokens, list) and len(tokens) > 1 and tokens[0] == tokens[1]

    def require_engine(self) -> None:
        """Return once the model's engine answers at all; raises GatewayError and Refusal."""
        call = replace(self._call, target="/health", method="GET", passing=Passing.ANYTHING)
        reply = self._gateway.call(call)
        try:
            if reply.status == 503:
                raise Refusal(503, message(reply.body) or "the engine is not ready")
        finally:
            reply.close()


def _error_of(reply: Reply) -> dict[str, Any]:
    """The engine's error object, with its message always there; closes the reply."""
    try:
        body = reply.body
    finally:
        reply.close()
    try:
        found = jsontext.decode(body)
    except jsontext.JsonError:
        found = None
    error = found.get("error") if isinstance(found, dict) else None
    return {**(error if isinstance(error, dict) else {}), "message": message(body)}


def _shorter(ask: Ask, error: dict[str, Any]) -> Ask | None:
    """The same chat without its oldest messages, where its length was what the engine refused."""
    if error.get("type") != "exceed_context_size_error":
        return None
    tokens, limit = error.get("n_prompt_tokens"), error.get("n_ctx")
    if not isinstance(tokens, int) or not isinstance(limit, int):
        return None
    return chat.shortened(ask, tokens, limit)


def _refusal(reply: Reply, error: dict[str, Any], target: Target) -> Refusal | GatewayError:
    """An engine's refusal as Ollama tells it."""
    said = error["message"] or f"the engine answered {reply.status}"
    if error.get("type") == "exceed_context_size_error":
        return invalid(TOO_LONG)
    if reply.status in _KEY_REFUSED:  # of the gateway's key; clients would ask for one of theirs
        return GatewayError(Kind.UPSTREAM_ERROR, f"the engine refuses the gateway's key: {said}")
    if 300 <= reply.status < 400:
        text = f"the engine answered {reply.status}, which the gateway does not follow"
        return GatewayError(Kind.UPSTREAM_ERROR, text)
    if reply.status == 501:
        return invalid(f"{quoted(target.asked)} does not support this: {said}")
    if reply.status < 500 or reply.status == 503:
        return Refusal(reply.status, said, reply.header("retry-after"))
    if _CLIENTS_FAULT.match(said):
        return invalid(said)
    text = f"the engine answered {reply.status}: {said}"
    return GatewayError(Kind.UPSTREAM_ERROR, text)
