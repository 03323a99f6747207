"""``context``: the token ids of a conversation so far, which /api/generate gives and takes."""

import time
from collections.abc import Callable
from typing import Any

from app.api.ollama.rendering import Held
from app.api.ollama.request.ask import CHAT, Ask
from app.api.ollama.request.fields import flag
from app.api.ollama.sending import Sender
from app.api.ollama.target import Target
from app.errors import GatewayError

Recall = Callable[[str, list[int]], list[int]]
_LookUp = Callable[[str, dict[str, Any], str], Any]

_FOR_TEMPLATE = ("messages", "chat_template_kwargs", "tools")
_PATIENCE = 2.0  # s for which the last line waits for its context


def of(fields: dict[str, Any], ask: Ask, target: Target, sender: Sender,
       held: Held) -> Recall | None:
    """What turns an answer's text into the context behind it; None where there is to be none.

    Only a llama-server can be asked for tokens, and a raw prompt is the caller's own affair. The
    reply is let go before: where an engine answers one call at a time, it could not be asked.
    """
    raw = flag(fields.get("raw"), "raw") or fields.get("template") or fields.get("suffix")
    if raw or not target.facts.is_llama_server or _has_pictures(fields):
        return None

    def recall(text: str, _: list[int]) -> list[int]:
        held.over()
        held.close()
        until = time.monotonic() + _PATIENCE

        def look_up(path: str, body: dict[str, Any], key: str) -> Any:
            return sender.look_up(path, body, key, limit=until - time.monotonic())

        try:
            return _tokens(ask, text, look_up)
        except GatewayError:
            return []  # the answer is whole without it

    return recall


def _tokens(ask: Ask, text: str, look_up: _LookUp) -> list[int]:
    if ask.style == CHAT:
        body = {key: ask.body[key] for key in _FOR_TEMPLATE if key in ask.body}
        before: list[int] = []
        prompt = look_up("/apply-template", body, "prompt")
    else:
        parts = ask.body["prompt"] if isinstance(ask.body["prompt"], list) else [ask.body["prompt"]]
        before = [part for part in parts if isinstance(part, int)]
        prompt = "".join(part for part in parts if isinstance(part, str))
    # The engine begins every prompt with what its vocabulary wants there, so no context holds it.
    body = {"content": f"{prompt}{text}", "add_special": False, "parse_special": True}
    found = look_up("/tokenize", body, "tokens")
    return before + [token for token in found if isinstance(token, int)]


def _has_pictures(fields: dict[str, Any]) -> bool:
    return bool(fields.get("images"))
