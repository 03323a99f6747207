"""What a model can do, in Ollama's words, read from its files and from the engine that runs it.

The rules are Ollama's (github.com/ollama/ollama, server/images.go), with two more signs of
thinking. Pure: facts in, words out.
"""

import re
from collections.abc import Iterator

from app.catalog.file_facts import Facts
from app.engine_facts import EngineFacts

COMPLETION, EMBEDDING, INSERT = "completion", "embedding", "insert"
TOOLS, THINKING, VISION, AUDIO = "tools", "thinking", "vision", "audio"

_SPLITS_THOUGHTS = re.compile(r"""split\(\s*['"]</think>['"]""")
# In the order of prefix, suffix and middle; the second row is that of older files.
_FILL_IN_TOKENS = (("fim_pre", "fim_suf", "fim_mid"), ("prefix", "suffix", "middle"))


def capabilities(
    facts: Facts, projector: Facts | None = None, engine: EngineFacts | None = None
) -> tuple[str, ...]:
    """Ollama's capabilities of a model, in Ollama's order, at least one.

    ``projector`` is the file beside the model that sees or hears for it. What an engine says of
    the model it has loaded counts more than the files.
    """
    return tuple(_found(facts, projector, engine if engine and engine.described else None))


def _found(facts: Facts, projector: Facts | None, engine: EngineFacts | None) -> Iterator[str]:
    template = engine.chat_template if engine and engine.chat_template else facts.templates
    if _takes_tools(template, engine):
        yield TOOLS
    if thinks(template) or facts.architecture in ("gptoss", "gpt-oss"):
        yield THINKING
    yield EMBEDDING if facts.own("pooling_type") is not None else COMPLETION
    sees, hears = (engine.vision, engine.audio) if engine else _senses(facts, projector)
    if sees:
        yield VISION
    if hears:
        yield AUDIO
    if fills_in(facts):
        yield INSERT


def thinks(template: str) -> bool:
    """Whether a chat template belongs to a model that thinks before it answers."""
    if "<think>" in template and "</think>" in template:
        return True
    if _SPLITS_THOUGHTS.search(template) and "reasoning_content" not in template:
        return True
    return "enable_thinking" in template or "<|channel|>analysis" in template


def fills_in(facts: Facts) -> bool:
    """Whether the vocabulary names the tokens for text before, after and in the middle."""
    return any(
        all(facts.number(f"tokenizer.ggml.{name}_token_id") is not None for name in names)
        for names in _FILL_IN_TOKENS
    )


def _takes_tools(template: str, engine: EngineFacts | None) -> bool:
    if engine and engine.supports_tools is not None:
        return engine.supports_tools
    return "tools" in template or "tool_call" in template


def _senses(facts: Facts, projector: Facts | None) -> tuple[bool, bool]:
    """Whether the model sees and whether it hears, by itself or by its projector."""
    sees = facts.own("vision.block_count") is not None
    hears = facts.own("audio.block_count") is not None
    if projector is None:
        return sees, hears
    listens = projector.values.get("clip.has_audio_encoder") is True
    # Before there were projectors for sound none had to say that it is for pictures.
    looks = projector.values.get("clip.has_vision_encoder", not listens) is True
    return sees or looks, hears or listens


def through(template: str, found: tuple[str, ...]) -> tuple[str, ...]:
    """What is left of capabilities where prompts are made by a template of Ollama's kind.

    It makes text of a chat, knows nothing of tools and thoughts, and may say where to fill in.
    """
    left = tuple(each for each in found if each not in (TOOLS, THINKING, INSERT))
    return (*left, INSERT) if ".Suffix" in template else left
