"""Kinds of calls whose ends are known: whole, refused, broken off, or left by their client."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.fakes.engine_steps import JSON_TYPE, close, reply, reset, silence
from tests.fakes.raw_engine import Step
from tests.fakes.stream_steps import DONE, STOP, data, end_of, endless, ev, framed, head_for
from tests.server.calls import CHAT, to_bytes

INFER, OLLAMA, EMBED, MESSAGES = "/v1/inference/stream", "/api/chat", "/api/embed", "/v1/messages"
USAGE = data({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
MESSAGE_START = data({"type": "message_start", "message": {"usage": {
    "input_tokens": 9, "output_tokens": 1}}}, "message_start")
MESSAGE_END = data({"type": "message_delta", "usage": {"output_tokens": 4}}) + data(
    {"type": "message_stop"}, "message_stop")


class End(NamedTuple):
    """How a call ends, as its record tells it."""

    status: int
    closed_by: str = "gateway"
    error: str | None = None
    tokens: tuple[int | None, int | None] = (None, None)
    model: str = "m"
    engine: bool = True


class Kind(NamedTuple):
    """A way to call, and how that ends.

    ``key`` is whose key is sent, ``headers`` are more of them. ``leave`` is when the client leaves,
    if it does; "late" is one that stays and never sends the last byte.
    """

    name: str
    end: End
    path: str = CHAT
    method: str = "POST"
    fields: dict[str, Any] = {}
    raw: bytes | None = None
    leave: str = ""
    route: str | None = ""
    key: str = "alice"
    headers: tuple[tuple[str, str], ...] = ()

    def body(self, word: str) -> bytes | None:
        """The body, in which ``word`` says to the engine what to do."""
        if self.method != "POST":
            return None
        prompt = {"input": word} if self.path == EMBED else {
            "messages": [{"role": "user", "content": word}]}
        model = "modelId" if self.path == INFER else "model"
        return self.raw or to_bytes({model: "m", **prompt, **self.fields})


def piecewise(*pieces: bytes, then: Step | None = None) -> list[Step]:
    """A stream of these pieces, one chunk each."""
    return [lambda exchange: exchange.send(head_for("chunked")),
            *(lambda exchange, p=piece: exchange.send(framed("chunked", p)) for piece in pieces),
            then or end_of("chunked")]


def refused(status: int, error: str, model: str = "") -> End:
    """An end before any engine."""
    return End(status, "gateway", error, model=model, engine=False)


MAX_BODY = 65536
SPEECH = [("Content-Type", "audio/wav")]
STREAM: dict[str, Any] = {"stream": True}
WHOLE = End(200, tokens=(3, 2))
STREAMED = End(200, tokens=(7, 3))
CUT = End(200, "engine", "upstream_error")
LEFT = End(499, "client", "client_gone")
NOWHERE = {"model": "", "engine": False}
SCRIPTS: dict[str, Sequence[Step]] = {
    "whole": [reply()],
    "stream": piecewise(ev("a"), ev("b"), STOP, USAGE, DONE),
    "messages": piecewise(MESSAGE_START, data({"type": "ping"}), MESSAGE_END),
    "cut": piecewise(ev("a"), ev("b"), then=close), "torn": piecewise(ev("a"), then=reset),
    "unmarked": piecewise(ev("a")),
    "speech": [lambda exchange: exchange.send(head_for("chunked", headers=SPEECH)),
               lambda exchange: exchange.send(framed("chunked", b"RIFF")), close],
    "die": [close], "reset": [reset], "silence": [silence],
    "refused": [reply(400, b'{"error":{"message":"no"}}')],
    "busy": [reply(503, b'{"error":{"message":"busy"}}', [*JSON_TYPE, ("Retry-After", "9")])],
    "sad": [reply(500, b'{"error":{"message":"sad"}}')],
    "mute": [silence],
    "hold": piecewise(ev("a"), then=silence),
    "pour": piecewise(ev("a"), then=endless(ev("a"))),
    "vectors": [reply(200, json.dumps({
        "data": [{"index": 0, "embedding": [0.6, 0.8]}], "usage": {"prompt_tokens": 5}}).encode())],
}
KINDS = [
    Kind("whole", WHOLE), Kind("stream", STREAMED, fields=STREAM),
    Kind("whole", End(200, tokens=(3, 2)), path="/v1/embeddings"),
    Kind("whole", WHOLE._replace(model="other"), fields={"model": "any/of-many"}),
    Kind("messages", End(200, tokens=(9, 4)), MESSAGES, fields=STREAM),
    Kind("stream", STREAMED, OLLAMA), Kind("stream", STREAMED, OLLAMA, fields={"stream": False}),
    Kind("stream", End(200, tokens=(None, None)), INFER),
    Kind("vectors", End(200, tokens=(5, None)), EMBED),
    Kind("cut", CUT, fields=STREAM), Kind("cut", CUT, OLLAMA), Kind("cut", CUT, INFER),
    Kind("torn", CUT, fields=STREAM), Kind("speech", CUT, "/v1/audio/speech"),
    Kind("cut", End(502, "gateway", "upstream_error"), OLLAMA, fields={"stream": False}),
    Kind("unmarked", CUT, fields=STREAM),
    Kind("die", End(502, "gateway", "upstream_error")),
    Kind("reset", End(502, "gateway", "upstream_error"), fields=STREAM),
    Kind("silence", End(504, "gateway", "engine_timeout")),
    Kind("refused", End(400)), Kind("refused", End(400), OLLAMA), Kind("busy", End(503)),
    Kind("sad", End(502, "gateway", "upstream_error")),
    Kind("gone", End(502, "gateway", "engine_unavailable", model="gone"),
         fields={"model": "gone"}),
    Kind("nope", End(404, "gateway", "unknown_model", model="other", engine=False),
         fields={"model": "nope"}),
    Kind("no json", End(400, "gateway", "invalid_body", **NOWHERE), raw=b"{"),
    Kind("wrong", End(400, "gateway", "invalid_field", **NOWHERE), fields={"temperature": 9}),
    Kind("keyless", refused(401, "unauthorized"), key=""),
    Kind("stranger", refused(401, "unauthorized"), OLLAMA, key="nobody"),
    Kind("forbidden", refused(403, "model_not_allowed", "other"), key="guest"),
    Kind("scope", refused(403, "scope_missing"), "/engines", "GET", key="guest"),
    Kind("host", refused(403, "host_not_allowed"), key="", headers=(("Host", "evil.example"),)),
    Kind("page", refused(403, "origin_not_allowed"), key="",
         headers=(("Origin", "https://evil.example"),)),
    Kind("late", refused(408, "body_too_slow"), leave="late"),
    Kind("large", refused(413, "body_too_large"), raw=b"x" * (MAX_BODY + 1)),
    Kind("packed", refused(415, "unsupported_coding"), headers=(("Content-Encoding", "br"),)),
    Kind("hasty", refused(429, "rate_limited"), "/api/tags", "GET", key="hasty"),
    Kind("single", refused(429, "rate_limited"), key="single"),
    Kind("full", End(429, "gateway", "queue_full", model="full"), fields={"model": "full"}),
    Kind("list", End(200, **NOWHERE), "/v1/models", "GET"),
    Kind("head", End(200, **NOWHERE), "/api/tags", "HEAD"),
    Kind("unknown", End(404, "gateway", "unknown_url", **NOWHERE), "/nope", "GET", route=None),
    Kind("method", End(405, "gateway", "method_not_allowed", **NOWHERE), "/v1/models", "PUT",
         route="/v1/<path:rest>"),
    Kind("mute", LEFT, leave="at once"), Kind("mute", LEFT, OLLAMA, leave="at once"),
    Kind("hold", LEFT, fields=STREAM, leave="midway"), Kind("hold", LEFT, OLLAMA, leave="midway"),
    Kind("hold", LEFT, INFER, leave="midway"), Kind("pour", LEFT, fields=STREAM, leave="midway"),
]
# One after the other: an engine that is started, and dies in the midst of its second answer, and
# one that does not start.
FRAIL = [
    Kind("id:x", WHOLE._replace(model="frail"), fields={"model": "frail"}),
    Kind("crash:1", CUT._replace(model="frail"), fields={"model": "frail", **STREAM}),
    Kind("broken", End(503, "gateway", "engine_not_ready", model="broken"),
         fields={"model": "broken"}),
]
# What the calls of "single" and "full" are too many beside, and the one call of "hasty".
PLUG = Kind("hold", LEFT._replace(model="full"), fields={"model": "full", **STREAM}, key="single")
FIRST = Kind("hasty", End(200, **NOWHERE), "/api/tags", "GET", key="hasty")
