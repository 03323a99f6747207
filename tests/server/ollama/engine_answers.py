"""What the engines behind the gateway under test answer, path by path, where a test says nothing.

Source of the shapes: llama.cpp, tools/server/README.md, and the OpenAI API.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.fakes.engine_steps import COMPLETION, reply
from tests.fakes.raw_engine import Exchange, Script, Step
from tests.fakes.stream_steps import DONE, STOP, chunk, data, ev, stream

V1_CHAT, V1_TEXT, V1_EMBEDDINGS = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
TIMINGS = {"cache_n": 5, "prompt_n": 7, "prompt_ms": 12.5, "predicted_n": 3, "predicted_ms": 40.25}
USAGE = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
FIRST = chunk({"role": "assistant", "content": None})
COUNTS = data({"choices": [], "usage": USAGE, "timings": TIMINGS})
FIRST_TOKEN = 1000  # in the fake vocabulary each character is a token from here on
BEGIN, END = 101, 102  # the tokens that it puts around a text


def streamed(*events: bytes) -> list[Step]:
    """A chat's whole stream: these events with a beginning, an end and counts around them."""
    return stream("chunked", [FIRST, *events, STOP, COUNTS, DONE])


def token(text: str) -> bytes:
    """One event of llama-server's own API."""
    return data({"index": 0, "content": text, "tokens": [], "stop": False, "id_slot": 0})


def stopped(kind: str = "eos") -> bytes:
    """The last event of llama-server's own API."""
    return data({"index": 0, "content": "", "tokens": [], "stop": True, "stop_type": kind,
                 "tokens_predicted": 3, "tokens_evaluated": 12, "timings": TIMINGS})


def piece(text: str, finish: str | None = None) -> bytes:
    """One event of the older completions API."""
    return data({"object": "text_completion", "model": "m",
                 "choices": [{"index": 0, "text": text, "finish_reason": finish}]})


def failing(status: int, message: str, kind: str = "server_error", **more: Any) -> Step:
    """An error in the envelope of llama-server."""
    error = {"code": status, "message": message, "type": kind, **more}
    return reply(status, json.dumps({"error": error}, ensure_ascii=False).encode())


def too_long(tokens: int, context: int) -> Step:
    """How llama-server refuses a prompt that does not fit."""
    text = (f"request ({tokens} tokens) exceeds the available context size "
            f"({context} tokens), try increasing it")
    return failing(400, text, "exceed_context_size_error", n_prompt_tokens=tokens, n_ctx=context)


def vectors(*found: Sequence[Any], tokens: int = 7) -> Step:
    """An answer of /v1/embeddings with these vectors."""
    listed = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(found)]
    return reply(200, json.dumps({"object": "list", "model": "m", "data": listed,
                                  "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
                                 ).encode())


def body_of(exchange: Exchange) -> dict[str, Any]:
    """The fields of the request that is being answered."""
    return dict(json.loads(exchange.request.body))


def routed(routes: Mapping[str, Script]) -> Step:
    """Answer each path by its own script, a path without one by a 404."""
    def step(exchange: Exchange) -> None:
        script = routes.get(exchange.request.path, failing(404, "File Not Found"))
        for each in [script] if callable(script) else script:
            each(exchange)
    return step


def tokens_of(text: str) -> list[int]:
    """The text in the fake vocabulary, nothing around it."""
    return [FIRST_TOKEN + ord(character) for character in text]


def text_of(tokens: Sequence[int]) -> str:
    """The text that these tokens stand for."""
    return "".join(chr(token - FIRST_TOKEN) for token in tokens if token >= FIRST_TOKEN)


def prompt_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the fake engine's chat template makes of messages."""
    return "".join(f"<{m['role']}>{m['content']}" for m in messages) + "<assistant>"


def _chat(exchange: Exchange) -> None:
    whole: Script = reply(200, COMPLETION)
    script = streamed(ev("Hel"), ev("lo")) if body_of(exchange).get("stream") else whole
    for step in [script] if callable(script) else script:
        step(exchange)


def _embeddings(exchange: Exchange) -> None:
    given = body_of(exchange)["input"]
    inputs = given if isinstance(given, list) else [given]
    vectors(*([1.0, float(len(each)), 2.0] for each in inputs))(exchange)


def _tokenize(exchange: Exchange) -> None:
    asked = body_of(exchange)
    around = ([BEGIN], [END]) if asked.get("add_special") else ([], [])
    found = around[0] + tokens_of(asked["content"]) + around[1]
    reply(200, json.dumps({"tokens": found}).encode())(exchange)


def _detokenize(exchange: Exchange) -> None:
    reply(200, json.dumps({"content": text_of(body_of(exchange)["tokens"])}).encode())(exchange)


def _apply_template(exchange: Exchange) -> None:
    prompt = prompt_of(body_of(exchange)["messages"])
    reply(200, json.dumps({"prompt": prompt}).encode())(exchange)


OPENAI_ROUTES: dict[str, Script] = {
    V1_CHAT: _chat,
    V1_TEXT: stream("chunked", [piece("Hel"), piece("lo", "stop"), DONE]),
    V1_EMBEDDINGS: _embeddings,
}
LLAMA_ROUTES: dict[str, Script] = {
    **OPENAI_ROUTES,
    "/completion": stream("chunked", [token("Hel"), token("lo"), stopped()]),
    "/infill": stream("chunked", [token("between"), stopped()]),
    "/tokenize": _tokenize,
    "/detokenize": _detokenize,
    "/apply-template": _apply_template,
}
