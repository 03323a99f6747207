"""What an engine is estimated to need, from what the model's files say; computed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from app.catalog.footprint import estimate
from app.catalog.model_facts import ModelFacts
from tests.fakes.model_files import projector, pulled
from tests.fakes.registry_home import RegistryHome
from tests.fakes.shaped_models import shaped

PROCESS = 72 * 2**20
FILE = 1_000_000
WORDS = 1000
# Two layers, and in each two heads with keys and values of 16 numbers: 128 bytes of a token.
SMALL = {"block_count": 2, "embedding_length": 64, "feed_forward_length": 96,
         "attention.head_count": 4, "attention.head_count_kv": 2}
MAMBA = {"block_count": 2, "embedding_length": 64, "ssm.conv_kernel": 4, "ssm.inner_size": 96,
         "ssm.state_size": 16}


def small(home: RegistryHome, architecture: str = "llama", files: Any = None,
          beside: Mapping[str, bytes] = MappingProxyType({}), **keys: Any) -> ModelFacts:
    """A pulled model of that architecture; `keys` are replaced in its file, "__" being a dot."""
    known = MAMBA if architecture == "mamba" else SMALL
    told = {key.replace("__", "."): value for key, value in keys.items()}
    data = {"model.gguf": shaped(architecture, {**known, **told}, WORDS), **beside}
    return pulled(home, data, files=files or [{"path": path, "size": FILE} for path in data])


def around(slot: int, batch: int, outputs: int, made: int = 2) -> int:
    """The process, one file and the work space: all but the cache."""
    inside = batch * (4 * 64 + 2 * 96) * 4
    return PROCESS + FILE + inside + batch * slot * 4 + made * outputs * WORDS * 4 + WORDS * 320


@pytest.mark.parametrize(("context", "slots", "slot"), [
    (8192, 2, 4096), (8192, 1, 8192), (8000, 2, 4096), (1, 1, 256), (8193, 2, 4352),
    (8192, 0, 8192)])
def test_the_cache_holds_the_context_of_every_slot(
        registry_home: RegistryHome, context: int, slots: int, slot: int) -> None:
    """In cells of 256 tokens; no slots are one."""
    caches = max(slots, 1)
    needed = caches * 2 * 128 * slot + around(slot, 512, caches)
    assert estimate(small(registry_home), context, slots) == needed


def test_embedding_keeps_the_logits_of_a_whole_batch(registry_home: RegistryHome) -> None:
    """A chat needs those of one token for each slot."""
    model, cache = small(registry_home), 2 * 128 * 4096
    assert estimate(model, 4096, 1, 256, embeds=True) == cache + around(4096, 256, 256)
    assert estimate(model, 4096, 1, 256) == cache + around(4096, 256, 1)


def test_a_window_holds_less(registry_home: RegistryHome) -> None:
    """512 tokens and those being computed, and a copy of the 512 to go back to."""
    model = small(registry_home, "gemma3", attention__sliding_window=512, block_count=6)
    cache = 4 * 128 * (5 * (768 + 512) + 4096)
    assert estimate(model, 16384, 4, 256) == cache + around(4096, 256, 4)


def test_a_window_is_never_more_than_the_slot(registry_home: RegistryHome) -> None:
    """Nor is its copy."""
    model = small(registry_home, "gemma3", attention__sliding_window=4096, block_count=6)
    cache = 128 * (5 * (1024 + 1024) + 1024)
    assert estimate(model, 1024, 1, 256) == cache + around(1024, 256, 1)


def test_a_state_does_not_grow_with_the_context(registry_home: RegistryHome) -> None:
    """There is one for each layer and slot, and a copy."""
    state = (3 * 96 + 16 * 96) * 4
    model = small(registry_home, "mamba")
    assert estimate(model, 16384, 4) == 4 * 2 * 2 * state + around(4096, 512, 4)


def test_what_only_reads_makes_no_logits(registry_home: RegistryHome) -> None:
    """And keeps no tokens."""
    model = small(registry_home, "bert", attention__causal=False)
    assert estimate(model, 2048, 4, 512, embeds=True) == around(512, 512, 512, made=1)


def test_all_parts_of_a_split_model_count(registry_home: RegistryHome) -> None:
    """As large as the manifest says they are, and nothing that is not of the model."""
    parts = [{"path": f"x-0000{n}-of-00003.gguf", "size": n * FILE} for n in (1, 2, 3)]
    files = [*parts, {"path": "README.md", "size": 77}]
    model = small(registry_home, files=files)
    assert estimate(model, 4096, 1) == PROCESS + 6 * FILE + 3 * FILE


@pytest.mark.parametrize(("name", "counted"), [("mmproj.gguf", True), ("other.gguf", False)])
def test_a_projector_counts_one_and_a_half_times(
        registry_home: RegistryHome, name: str, counted: bool) -> None:
    """With what it needs to look at a picture; another file is not loaded."""
    model = small(registry_home, beside={name: projector(vision=True)})
    alone = 2 * 128 * 4096 + around(4096, 512, 1)
    assert estimate(model, 4096, 1) == alone + (FILE * 3 // 2 if counted else 0)


@pytest.mark.parametrize("data", [
    b"<html>", shaped("llama", {}), shaped("llama", {**SMALL, "block_count": 2**63}),
    shaped("llama", {**SMALL, "attention.head_count_kv": 2**64 - 1}),
], ids=["no_model", "says_nothing", "absurd_layers", "absurd_heads"])
@pytest.mark.parametrize("context", [0, 4096, 2**40])
def test_without_metadata_half_as_much_again_as_the_file(
        registry_home: RegistryHome, data: bytes, context: int) -> None:
    """However much context is asked for."""
    files = [{"path": "model.gguf", "size": FILE}]
    model = pulled(registry_home, {"model.gguf": data}, files=files)
    assert estimate(model, context, 4) == PROCESS + FILE * 3 // 2


@pytest.mark.parametrize("context", [2**31, 2**63, 2**80])
def test_an_absurd_context_needs_an_absurd_amount(
        registry_home: RegistryHome, context: int) -> None:
    """So that it fits into no budget."""
    assert estimate(small(registry_home), context, 4) > 128 * context
