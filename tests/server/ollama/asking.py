"""How the tests ask Ollama's questions, and how they look at what the engine was asked."""

from __future__ import annotations

import json
from typing import Any

from tests.fakes.raw_client import RawAnswer
from tests.fakes.raw_engine import RawEngine, RawRequest
from tests.server.calls import post
from tests.server.ollama.engine_answers import V1_CHAT
from tests.server.ollama.served_models import EMBEDDER, TALKER

CHAT, GENERATE, EMBED, EMBEDDINGS = "/api/chat", "/api/generate", "/api/embed", "/api/embeddings"
TAGS, PS, PULL, VERSION = "/api/tags", "/api/ps", "/api/pull", "/api/version"
HI = [{"role": "user", "content": "hi"}]
# A request to each route that makes an engine work.
WORK: dict[str, dict[str, Any]] = {
    CHAT: {"model": TALKER, "messages": HI}, GENERATE: {"model": TALKER, "prompt": "hi"},
    EMBED: {"model": EMBEDDER, "input": "hi"}, EMBEDDINGS: {"model": EMBEDDER, "prompt": "hi"},
}


def chat(url: str, **fields: Any) -> RawAnswer:
    """One chat, its answer whole."""
    return post(url, CHAT, {**WORK[CHAT], **fields})


def generate(url: str, **fields: Any) -> RawAnswer:
    """One answer to a prompt, whole."""
    return post(url, GENERATE, {**WORK[GENERATE], **fields})


def embed(url: str, **fields: Any) -> RawAnswer:
    """The vectors of an input."""
    return post(url, EMBED, {**WORK[EMBED], **fields})


def asked(engine: RawEngine, path: str = V1_CHAT) -> list[dict[str, Any]]:
    """The fields of all requests that reached this path of the engine."""
    return [fields_of(request) for request in engine.requests if request.path == path]


def sent(engine: RawEngine, path: str = V1_CHAT) -> dict[str, Any]:
    """The fields of the one request that reached this path of the engine."""
    [fields] = asked(engine, path)
    return fields


def fields_of(request: RawRequest) -> dict[str, Any]:
    """The body of a request to an engine, which has to be a JSON object."""
    found = json.loads(request.body)
    assert isinstance(found, dict)
    return found
