"""/api/generate: a chat of one question, or a prompt that goes to the engine as it is."""

from dataclasses import replace
from typing import Any

from app.api.ollama.refusal import invalid
from app.api.ollama.request import chat, completion, images, template, think, turns
from app.api.ollama.request.ask import CHAT, Ask
from app.api.ollama.request.completion import Prompt, tagged
from app.api.ollama.request.fields import flag, items, objects, text
from app.engine_facts import EngineFacts

Fields = dict[str, Any]

_LARGEST_TOKEN = 2**31 - 1  # the engine would take a larger id for another token


def ask(fields: Fields, facts: EngineFacts, thinking: bool) -> Ask:
    """What the engine is asked to generate. Raises Refusal.

    ``thinking``: the model has the capability. The prompt is not empty.

    1. "template": the prompt that it makes, as it is.
    2. "suffix": what stands between the two.
    3. "raw": the prompt as it is.
    4. "context", on llama-server: a chat after those tokens. Other engines cannot be told.
    5. Otherwise a chat.
    """
    _check(fields)
    wanted = think.wanted(fields, thinking)
    if _text(fields, "template"):
        return _templated(fields, facts)  # 1
    if _text(fields, "suffix"):
        return _between(fields, facts)  # 2
    if flag(fields.get("raw"), "raw"):
        return completion.complete(_prompt(fields), fields, facts)  # 3
    if _context(fields) and facts.is_llama_server:
        before = {"messages": _system(fields), **think.engine_fields(wanted, facts)}
        return completion.answer(_prompt(fields), before, fields, facts)  # 4
    pictures = items(fields.get("images"), "images")
    question = {"role": "user", "content": _text(fields, "prompt"), "images": pictures}
    whole = {**fields, "messages": [*_system(fields), *_before(fields), question]}
    return Ask("/v1/chat/completions", chat.body(whole, facts, thinking), CHAT)  # 5


def _check(fields: Fields) -> None:
    if any(fields.get(name) for name in ("width", "height", "steps")):
        raise invalid("image generation models are not currently supported")
    chatty = _text(fields, "template"), _text(fields, "system"), _context(fields)
    if flag(fields.get("raw"), "raw") and any(chatty):
        raise invalid("raw mode does not support template, system, or context")


def _templated(fields: Fields, facts: EngineFacts) -> Ask:
    """With a suffix the whole template counts and there is no system text, as in Ollama."""
    prompt, suffix = _prompt(fields), _text(fields, "suffix")
    if _before(fields) and not suffix:
        question = {"role": "user", "content": prompt.text}
        told = turns.prompt(_text(fields, "template"),
                            [*_system(fields), *_before(fields), question])
        return completion.complete(replace(prompt, text=told.text), fields, facts)
    values = {"prompt": prompt.text, "suffix": suffix}
    if not suffix:
        values["system"] = _text(fields, "system")
    rendered = template.render(_text(fields, "template"), values, whole=bool(suffix))
    return completion.complete(replace(prompt, text=rendered), fields, facts)


def _between(fields: Fields, facts: EngineFacts) -> Ask:
    if items(fields.get("images"), "images"):
        raise invalid("images do not go together with suffix")
    return completion.fill_in(_text(fields, "prompt"), _text(fields, "suffix"), fields, facts)


def _prompt(fields: Fields) -> Prompt:
    pictures = _images(fields)
    return Prompt(tagged(_text(fields, "prompt"), len(pictures)), _context(fields), pictures)


def _images(fields: Fields) -> tuple[str, ...]:
    return tuple(images.read(image).data for image in items(fields.get("images"), "images"))


def _system(fields: Fields) -> list[dict[str, Any]]:
    system = _text(fields, "system")
    return [{"role": "system", "content": system}] if system else []


def _before(fields: Fields) -> list[dict[str, Any]]:
    """Messages that are the model's own; no client can send them under this name."""
    return objects(fields.get("earlier"), "earlier")


def _context(fields: Fields) -> tuple[int, ...]:
    tokens = items(fields.get("context"), "context")
    if not all(type(token) is int and 0 <= token <= _LARGEST_TOKEN for token in tokens):
        raise invalid("context must be a list of token ids")
    return tuple(tokens)


def _text(fields: Fields, name: str) -> str:
    return text(fields.get(name), name)
