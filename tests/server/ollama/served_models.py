"""The models behind the gateway under test: their files, and what their engine says of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fakes.engine_steps import reply
from tests.fakes.gguf_writer import Pair, Type
from tests.fakes.model_files import TALK, THINK_TALK, TOOL_TALK, projector, weights
from tests.fakes.raw_engine import Exchange

SLOT = 2048  # tokens of one call on the llama-server; the files say 4096
TALKER, TOOLER, THINKER = "talker:1b", "tooler", "org/thinker:8B"
HARMONY, SEER, FILLER = "harmony:20b", "seer", "hf.co/a/filler:Q4_K_M"
EMBEDDER, OTHER, GONE = "embedder", "other", "gone"
NAMED = ["foo", "bar:1b", "org/x", "hf.co/a/b:Q4_K_M"]
NICK = "nick"  # an alias of org/x
MARKER = "<__marker__>"
OPENING = "<|begin|>"  # the text of the token that begins a prompt
HARMONY_TALK = TOOL_TALK + "{% if x %}<|channel|>analysis<|message|>{% endif %}"


@dataclass(frozen=True)
class Model:
    """One model of the registry; ``props`` are beside those that all of the engine's have."""

    files: Mapping[str, bytes]
    template: str = TALK
    vision: bool = False

    @property
    def props(self) -> bytes:
        """GET /props of the engine that runs it."""
        tools = "tools" in self.template
        return json.dumps({
            "default_generation_settings": {"n_ctx": SLOT, "params": {}}, "total_slots": 64,
            "chat_template": self.template, "chat_template_caps": {"supports_tools": tools},
            "modalities": {"vision": self.vision, "audio": False}, "media_marker": MARKER,
            "bos_token": OPENING,
            "model_ftype": "Q4_K - Medium", "model_path": "/m.gguf", "is_sleeping": False,
        }).encode()


def _one(name: str, architecture: str = "llama", *pairs: Pair, template: str = TALK) -> Model:
    named: Pair = ("general.name", Type.STRING, name)  # no two files have one digest
    data = weights(architecture, named, *pairs, template=template)
    return Model({"model.gguf": data}, template)


_FILL_IN: list[Pair] = [(f"tokenizer.ggml.fim_{place}_token_id", Type.UINT32, number)
                        for number, place in enumerate(("pre", "suf", "mid"))]
_POOLING: Pair = ("nomic-bert.pooling_type", Type.UINT32, 1)

LLAMA: dict[str, Model] = {
    TALKER: _one(TALKER),
    TOOLER: _one(TOOLER, template=TOOL_TALK),
    THINKER: _one(THINKER, "qwen3", template=THINK_TALK),
    HARMONY: _one(HARMONY, "gpt-oss", template=HARMONY_TALK),
    SEER: Model({**_one(SEER, "gemma3").files, "mmproj-F16.gguf": projector(vision=True)},
                vision=True),
    FILLER: _one(FILLER, "qwen2", *_FILL_IN),
    EMBEDDER: _one(EMBEDDER, "nomic-bert", _POOLING, template=""),
    **{name: _one(name) for name in NAMED},
}
PULLED = {**LLAMA, OTHER: _one(OTHER), GONE: _one(GONE)}


def probed(exchange: Exchange) -> None:
    """Answer GET /props and GET /health as a llama-server does that runs all these models."""
    parts = urlsplit(exchange.request.path)
    if parts.path == "/health":
        reply(200, b'{"status":"ok"}')(exchange)
        return
    [name] = parse_qs(parts.query).get("model", [TALKER])
    known: Any = LLAMA.get(name) if parts.path == "/props" else None
    (reply(200, known.props) if known else reply(404, b"{}"))(exchange)
