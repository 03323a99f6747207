"""POST /api/embed and POST /api/embeddings."""

import json
import math
import re
import time
from typing import Any

from flask import Response

from app.api.http import json_response, services
from app.api.ollama.reading import read_call
from app.api.ollama.refusal import Refusal, invalid
from app.api.ollama.rendering import JSON
from app.api.ollama.request import keep_alive
from app.api.ollama.request.ask import Ask
from app.api.ollama.request.fields import flag, text, whole
from app.api.ollama.sending import Sender
from app.api.ollama.target import Target, ready, target_of
from app.api.recording import record
from app.api.security import require
from app.errors import GatewayError, Kind
from app.keys import Scope

TOO_LONG = "the input length exceeds the context length"
# In how many ways engines say that an input is too long.
_LENGTH = re.compile(
    "too large|context size|context length|physical batch size|exceeds the available context"
)
_BATCH = re.compile(r"current batch size: (\d+)")
_SPECIAL = 2  # tokens that the engine may put around an input


def embed() -> Response:
    """A vector of length 1 for each input."""
    started = record().began
    fields = read_call()
    target = target_of(fields, empty=invalid("model is required"))
    inputs = _inputs(fields.get("input"))
    size, keep = _dimensions(fields.get("dimensions")), _keep(fields, inputs)
    target = ready(target) if inputs else target
    sender = Sender(target)
    loaded = time.monotonic()
    vectors, tokens = _vectors(inputs, fields, target, sender) if inputs else ([], 0)
    _hold(target, keep, inputs)
    units = [_unit(vector[:size]) for vector in vectors]
    found: dict[str, Any] = {"model": target.asked, "embeddings": units}
    if inputs:
        found["total_duration"] = max(1, round((time.monotonic() - started) * 1e9))
        found["load_duration"] = max(1, round((loaded - started) * 1e9))
        found["prompt_eval_count"] = max(1, tokens)
    return json_response(found, JSON)


def embeddings() -> Response:
    """The vector of one prompt, as the engine has it."""
    fields = read_call()
    target = target_of(fields, empty=invalid("model is required"))
    prompt = text(fields.get("prompt"), "prompt")
    keep = _keep(fields, prompt)
    target = ready(target) if prompt else target
    vectors, _ = _vectors([prompt], fields, target, Sender(target)) if prompt else ([[]], 0)
    _hold(target, keep, prompt)
    return json_response({"embedding": vectors[0]}, JSON)


def _inputs(value: Any) -> list[str]:
    """The texts to embed; an empty one, which engines refuse, as a space."""
    if value is None or value == "":
        return []
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in items):
        raise invalid("invalid input type")
    return [text(item, "input") or " " for item in items]


def _vectors(
    inputs: list[str], fields: dict[str, Any], target: Target, sender: Sender
) -> tuple[list[list[float]], int]:
    """The vectors in the order of the inputs, and how many tokens went in. Raises Refusal."""
    truncate = flag(fields.get("truncate"), "truncate", True)
    try:
        return _asked(inputs, sender)
    except (Refusal, GatewayError) as error:
        said = error.text if isinstance(error, Refusal) else error.message
        if not _LENGTH.search(said):
            raise
        if not truncate or not target.facts.is_llama_server:
            raise invalid(TOO_LONG) from None
    batch = _BATCH.search(said)
    limits = [target.facts.slot_context, int(batch[1]) if batch else 0]
    limit = min(found for found in limits if found) - _SPECIAL if any(limits) else 0
    if limit <= 0:
        raise invalid(TOO_LONG)
    try:
        return _asked([_shortened(each, limit, sender) for each in inputs], sender)
    except (Refusal, GatewayError) as error:
        said = error.text if isinstance(error, Refusal) else error.message
        raise invalid(TOO_LONG) if _LENGTH.search(said) else error from None


def _asked(inputs: list[str], sender: Sender) -> tuple[list[list[float]], int]:
    reply = sender.send(Ask("/v1/embeddings", {"input": inputs}, "embedding"))
    try:
        found = json.loads(reply.body)
        data = sorted(found["data"], key=lambda item: item["index"])
        # Engines write NaN, which JSON does not know, as null.
        vectors = [[math.nan if number is None else float(number) for number in item["embedding"]]
                   for item in data]
        tokens = found.get("usage", {}).get("prompt_tokens", 0)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        text = "the engine did not answer with embeddings"
        raise GatewayError(Kind.UPSTREAM_ERROR, text) from None
    finally:
        reply.close()
    if not all(math.isfinite(number) for vector in vectors for number in vector):
        raise invalid("embedding contains NaN or Inf values")
    if len(vectors) != len(inputs):
        text = f"the engine answered {len(inputs)} inputs with {len(vectors)} embeddings"
        raise GatewayError(Kind.UPSTREAM_ERROR, text)
    return vectors, tokens if isinstance(tokens, int) else 0


def _shortened(value: str, limit: int, sender: Sender) -> str:
    """The text as it is if it has at most ``limit`` tokens, else so much of it."""
    body = {"content": value, "add_special": False}
    tokens: list[int] = sender.look_up("/tokenize", body, "tokens")
    if len(tokens) <= limit:
        return value
    return str(sender.look_up("/detokenize", {"tokens": tokens[:limit]}, "content"))


def _dimensions(value: Any) -> int | None:
    """How many numbers of each vector are wanted, None for all. Raises Refusal."""
    size = whole(value, "dimensions")
    if size < 0:
        raise invalid("dimensions must not be negative")
    return size or None


def _unit(vector: list[float]) -> list[float]:
    """The vector at length 1; one of zeros stays as it is."""
    length = math.sqrt(math.fsum(number * number for number in vector))
    return [number / length for number in vector] if length else vector


def _keep(fields: dict[str, Any], asked: list[str] | str) -> float | None:
    """For how long the model is to stay; to unload it and ask nothing takes a scope."""
    keep = keep_alive.of(fields)
    if keep == 0 and not asked:
        require(Scope.ADMIN)
    return keep


def _hold(target: Target, keep: float | None, asked: list[str] | str) -> None:
    """Let the model stay for so long, or be unloaded."""
    gateway = services().gateway
    if keep == 0 and not asked:
        gateway.unload(target.name)
    else:
        gateway.keep(target.name, keep, record().began)
