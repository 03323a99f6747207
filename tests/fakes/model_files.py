"""Models of each kind, as their files say what they are, and how to pull them into a registry."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from app.catalog.facts import FactsCache, ModelFacts
from app.catalog.registry import Registry
from tests.fakes.gguf_writer import LITTLE, Pair, Type, gguf
from tests.fakes.registry_home import RegistryHome

TALK = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
TOOL_TALK = TALK + "{% if tools %}{{ tools }}{% endif %}<tool_call>"
THINK_TALK = TOOL_TALK + "{% if enable_thinking %}<think>\n{% else %}<think></think>{% endif %}"


def weights(architecture: str = "llama", *pairs: Pair, template: str = TALK,
            shape: tuple[int, ...] = (1000, 1000, 7)) -> bytes:
    """A model of one tensor with a context of 4096 tokens; a later pair replaces an earlier one."""
    known: list[Pair] = [
        ("general.architecture", Type.STRING, architecture),
        ("general.name", Type.STRING, "Tiny"),
        ("general.size_label", Type.STRING, "9B"),
        (f"{architecture}.context_length", Type.UINT32, 4096),
        (f"{architecture}.embedding_length", Type.UINT32, 256),
        ("general.file_type", Type.UINT32, 15),
        ("tokenizer.ggml.tokens", Type.ARRAY, (Type.STRING, ["a", "b"])),
    ]
    if template:
        known.append(("tokenizer.chat_template", Type.STRING, template))
    by_key = {pair[0]: pair for pair in [*known, *pairs]}
    return gguf(by_key.values(), tensors=[LITTLE.tensor("t", *shape)])


def part(number: int, of: int, *elements: int) -> bytes:
    """One part of a split model; only the first has more than the numbers of the split."""
    split: list[Pair] = [("split.no", Type.UINT16, number - 1), ("split.count", Type.UINT16, of)]
    tensors = [LITTLE.tensor(f"t{index}", size) for index, size in enumerate(elements)]
    head: list[Pair] = [("general.architecture", Type.STRING, "qwen2"),
                        ("qwen2.context_length", Type.UINT32, 32768)] if number == 1 else []
    return gguf([*head, *split], tensors=tensors)


def projector(**has: bool) -> bytes:
    """The file that sees (``vision=True``) or hears (``audio=True``) for a model."""
    encoders: list[Pair] = [(f"clip.has_{what}_encoder", Type.BOOL, it) for what, it in has.items()]
    return gguf([("general.architecture", Type.STRING, "clip"), *encoders])


KINDS: dict[str, Mapping[str, bytes]] = {
    "normal": {"model.gguf": weights()},
    "without_metadata": {"model.gguf": gguf([])},
    "no_model_file": {"model.gguf": b"<html>"},
    "split": {f"x-0000{n}-of-00003.gguf": part(n, 3, 500_000 * n) for n in (1, 2, 3)},
    "embedding": {"model.gguf": weights(
        "nomic-bert", ("nomic-bert.pooling_type", Type.UINT32, 1), template="")},
    "vision": {"model.gguf": weights("gemma3"), "mmproj-F16.gguf": projector(vision=True)},
    "thinking": {"model.gguf": weights("qwen3", template=THINK_TALK)},
    "fill_in": {"model.gguf": weights("qwen2", *[
        (f"tokenizer.ggml.fim_{place}_token_id", Type.UINT32, number)
        for number, place in enumerate(("pre", "suf", "mid"))])},
}


def pulled(home: RegistryHome, data: Mapping[str, bytes] | str, name: str = "org/m:Q4_K_M",
           **manifest: Any) -> ModelFacts:
    """What is known of a model of these files, or of one of the ``KINDS``, after its pull."""
    home.add_files(name, KINDS[data] if isinstance(data, str) else data, **manifest)
    return facts_of(home, name)


def facts_of(home: RegistryHome, name: str) -> ModelFacts:
    """What is known of a model that has been pulled."""
    entry = Registry(home.path).find(name)
    assert entry is not None
    return FactsCache().of_model(entry)


def let_settle(home: RegistryHome) -> None:
    """Make all files look an hour old, so that their facts are remembered."""
    for path in home.path.rglob("*"):
        found = path.stat()
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns - 3600 * 10**9))
