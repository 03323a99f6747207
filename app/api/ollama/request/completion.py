"""Prompts that go to the engine as they are, without its chat template."""

import re
from dataclasses import dataclass, replace
from typing import Any

from app.api.ollama.refusal import invalid
from app.api.ollama.request import formats, options, probabilities
from app.api.ollama.request.ask import COMPLETION, COUNTED, TEXT, Ask, Lookup
from app.api.ollama.request.fields import mapping
from app.engine_facts import EngineFacts

Fields = dict[str, Any]

_TAG = re.compile(r"\[img-([0-9]{1,6})\]")
_OLDEST_MARKER = "<__media__>"  # of llama-servers that do not tell theirs


@dataclass(frozen=True)
class Prompt:
    """A text, the token ids that come before it and the images (base64) that its tags stand for."""

    text: str
    context: tuple[int, ...] = ()
    images: tuple[str, ...] = ()


def tagged(text: str, count: int) -> str:
    """``text`` with an ``[img-N]`` for each of ``count`` images; those that lack come first."""
    there = {int(number) for number in _TAG.findall(text)}
    return "".join(f"[img-{i}]" for i in range(count) if i not in there) + text


def complete(prompt: Prompt, fields: Fields, facts: EngineFacts) -> Ask:
    """The ask to continue ``prompt``; token ids mean nothing to engines of an unknown make.

    Raises Refusal.
    """
    if not facts.is_llama_server:
        if prompt.images:
            raise invalid("images do not go together with raw or template on this engine")
        return _ask("/v1/completions", {"prompt": prompt.text}, fields, facts)
    if prompt.images:
        lookups = (_tokens(prompt),) if prompt.context else ()
        made = _ask("/completion", {"prompt": marked(prompt, facts)}, fields, facts, lookups)
    else:
        whole: Any = _following(prompt.context, prompt.text) if prompt.context else prompt.text
        made = _ask("/completion", {"prompt": whole}, fields, facts)
    opened = prompt.text.startswith(facts.bos_token) and not prompt.context
    return replace(made, opening=facts.bos_token) if opened else made


def answer(prompt: Prompt, chat: Fields, fields: Fields, facts: EngineFacts) -> Ask:
    """The ask of llama-server to go on after the prompt's token ids with an answer to its text.

    ``chat`` is the rest of the chat that the engine's own template makes text of: the messages
    before it and the template's arguments. Raises Refusal.
    """
    text, images = prompt.text, []
    if prompt.images:
        text, images = marked(prompt, facts).values()
    messages = [*chat["messages"], {"role": "user", "content": text}]
    template = Lookup("/apply-template", {**chat, "messages": messages}, "prompt")
    if images:
        made: Any = {"prompt_string": "", "multimodal_data": images}
        return _ask("/completion", {"prompt": made}, fields, facts, (_tokens(prompt), template))
    return _ask("/completion", {"prompt": _following(prompt.context)}, fields, facts, (template,))


def fill_in(prefix: str, suffix: str, fields: Fields, facts: EngineFacts) -> Ask:
    """The ask for what stands between ``prefix`` and ``suffix``. Raises Refusal."""
    if facts.is_llama_server:
        made = {"input_prefix": prefix, "input_suffix": suffix}
        return _ask("/infill", made, fields, facts)
    return _ask("/v1/completions", {"prompt": prefix, "suffix": suffix}, fields, facts)


def marked(prompt: Prompt, facts: EngineFacts) -> dict[str, Any]:
    """llama-server's prompt with images: its marker for each tag, the images in that order."""
    marker = facts.media_marker or _OLDEST_MARKER
    numbers: list[int] = []

    def replaced(match: re.Match[str]) -> str:
        number = int(match[1])
        if number in numbers or number >= len(prompt.images):
            return match[0]
        numbers.append(number)
        return marker

    text = _TAG.sub(replaced, prompt.text)
    return {"prompt_string": text, "multimodal_data": [prompt.images[i] for i in numbers]}


def _following(context: tuple[int, ...], *texts: str) -> list[Any]:
    """A prompt that goes on from token ids: only before a text does the engine begin it."""
    return ["", *context, *texts]


def _tokens(prompt: Prompt) -> Lookup:
    """A prompt with images is one text, so what comes before it has to become text."""
    return Lookup("/detokenize", {"tokens": list(prompt.context)}, "content")


def _ask(target: str, prompt: Fields, fields: Fields, facts: EngineFacts,
         lookups: tuple[Lookup, ...] = ()) -> Ask:
    sampling = options.engine_fields(mapping(fields.get("options"), "options"), facts)
    top = probabilities.asked(fields)
    if facts.is_llama_server:
        alternatives = {} if top is None else {"n_probs": max(top, 1)}
        body = {**prompt, **sampling, **formats.for_completion(fields), **alternatives,
                "stream": True, "cache_prompt": True}
        return Ask(target, body, COMPLETION, lookups, formats.trials(fields, facts))
    alternatives = {} if top is None else {"logprobs": max(top, 1)}
    body = {**prompt, **sampling, **formats.for_chat(fields, facts), **alternatives, **COUNTED}
    return Ask(target, body, TEXT)
