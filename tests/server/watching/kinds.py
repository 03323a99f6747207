"""Kinds of calls whose ends are known: whole, refused, broken off, or left by their client."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.fakes.engine_steps import JSON_TYPE, close, reply, reset, silence
from tests.fakes.raw_client import RawClient, request_bytes
from tests.fakes.raw_engine import Exchange, Step
from tests.fakes.stream_steps import DONE, STOP, data, end_of, endless, ev, framed, head_for
from tests.server.calls import CHAT, JSON, to_bytes

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
    """A way to call, and how that ends. ``leave`` is when the client leaves, if it does."""

    name: str
    end: End
    path: str = CHAT
    method: str = "POST"
    fields: dict[str, Any] = {}
    raw: bytes | None = None
    leave: str = ""
    route: str | None = ""

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
    "cut": piecewise(ev("a"), ev("b"), then=close),
    "unmarked": piecewise(ev("a")),
    "speech": piecewise(b"RIFF", then=close),
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
    Kind("broken", End(400, "gateway", "invalid_body", **NOWHERE), raw=b"{"),
    Kind("wrong", End(400, "gateway", "invalid_field", **NOWHERE), fields={"temperature": 9}),
    Kind("list", End(200, **NOWHERE), "/v1/models", "GET"),
    Kind("head", End(200, **NOWHERE), "/api/tags", "HEAD"),
    Kind("unknown", End(404, "gateway", "unknown_url", **NOWHERE), "/nope", "GET", route=None),
    Kind("method", End(405, "gateway", "method_not_allowed", **NOWHERE), "/v1/models", "PUT",
         route="/v1/<path:rest>"),
    Kind("mute", LEFT, leave="at once"), Kind("mute", LEFT, OLLAMA, leave="at once"),
    Kind("hold", LEFT, fields=STREAM, leave="midway"), Kind("hold", LEFT, OLLAMA, leave="midway"),
    Kind("hold", LEFT, INFER, leave="midway"), Kind("pour", LEFT, fields=STREAM, leave="midway"),
]


class Scripted:
    """Answers each call as its word says, and tells when it has come."""

    def __init__(self) -> None:
        self._came: dict[str, threading.Event] = {}

    def expect(self, word: str) -> threading.Event:
        """What is set once the call with this word has reached the engine."""
        return self._came.setdefault(word, threading.Event())

    def __call__(self, exchange: Exchange) -> None:
        body = json.loads(exchange.request.body)
        word = body.get("input") or body["messages"][-1]["content"]
        word = word if isinstance(word, str) else word[0]
        self.expect(word).set()
        for step in SCRIPTS[word.partition(" ")[0]]:
            step(exchange)


def make(url: str, kind: Kind, number: int, engine: Scripted) -> int | None:
    """Make one call; its status where it was answered."""
    word = f"{kind.name} {number}"
    came = engine.expect(word)
    with RawClient(url) as client:
        body = kind.body(word)
        client.send(request_bytes(kind.method, kind.path, [("Host", "x"), *JSON], body))
        if kind.leave == "at once":
            assert came.wait(20)
            return None
        answer = client.answer(kind.method)
        if kind.leave:
            next(answer.pieces())
            return None
        return answer.whole().status
