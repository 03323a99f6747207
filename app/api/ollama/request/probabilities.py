"""The probabilities of tokens: Ollama's "logprobs" and "top_logprobs"."""

from typing import Any

from app.api.ollama.refusal import invalid
from app.api.ollama.request.fields import flag, whole

_MOST = 20


def asked(fields: dict[str, Any]) -> int | None:
    """How many alternatives per token are wanted, None where no probabilities are. Raises Refusal.

    Engines leave the probabilities out altogether when asked for 0 alternatives, so at least one
    is asked of them.
    """
    top = whole(fields.get("top_logprobs"), "top_logprobs")
    if not 0 <= top <= _MOST:
        raise invalid("top_logprobs must be between 0 and 20")
    return top if flag(fields.get("logprobs"), "logprobs") else None
