"""What a model keeps of the tokens it has read, by its file; expectations computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.catalog import file_facts
from app.catalog.model_shape import Layer, Shape, shape
from tests.fakes.shaped_models import shaped

# Two heads with keys and values of 16 numbers each, at two bytes: 2 * (16 + 16) * 2 = 128.
SMALL = {"block_count": 2, "embedding_length": 64, "attention.head_count": 4,
         "attention.head_count_kv": 2}


def shape_of(path: Path, architecture: str, keys: dict[str, Any], words: int = 0) -> Shape | None:
    """The shape of a model whose file has these keys."""
    file = path / "model.gguf"
    file.write_bytes(shaped(architecture, keys, words))
    return shape(file_facts.read(file))


def layers_of(path: Path, architecture: str, keys: dict[str, Any]) -> list[Layer]:
    """The layers of such a model."""
    found = shape_of(path, architecture, keys)
    assert found
    return list(found.layers)


@pytest.mark.parametrize(("keys", "tokens"), [
    ({}, [128, 128]),
    ({"attention.key_length": 24, "attention.value_length": 8}, [128, 128]),
    ({"attention.key_length": 24}, [160, 160]),
    ({"attention.head_count_kv": [2, 0]}, [128, 0]),
    ({"attention.head_count_kv": [1, 4]}, [64, 256]),
    ({"attention.head_count_kv": [1, 4, 8]}, [64, 256]),
    ({"attention.head_count": [4, 8], "attention.head_count_kv": [2, 2]}, [64, 64]),
    ({"attention.shared_kv_layers": 1}, [128, 0]),
    ({"block_count": 512}, [128] * 512),
    ({"attention.sliding_window": 512}, [128, 128]),
], ids=lambda it: ",".join(it) if isinstance(it, dict) else "")
def test_each_layer_keeps_keys_and_values(
        tmp_path: Path, keys: dict[str, Any], tokens: list[int]) -> None:
    """Of its heads for them, as long as they are told to be or as the heads are otherwise."""
    assert layers_of(tmp_path, "llama", {**SMALL, **keys}) == [Layer(token) for token in tokens]


def test_without_heads_of_their_own_all_heads_count(tmp_path: Path) -> None:
    """As in models from before keys and values were shared."""
    keys = {key: value for key, value in SMALL.items() if key != "attention.head_count_kv"}
    assert layers_of(tmp_path, "llama", keys) == [Layer(256), Layer(256)]


@pytest.mark.parametrize(("architecture", "pattern", "windows"), [
    ("gemma3", None, [512, 512, 512, 512, 512, 0, 512]),
    ("gemma2", None, [512, 0, 512, 0, 512, 0, 512]),
    ("gpt-oss", None, [512, 0, 512, 0, 512, 0, 512]),
    ("gemma3", 3, [512, 512, 0, 512, 512, 0, 512]),
    ("new", 3, [512, 512, 0, 512, 512, 0, 512]),
    ("new", [True, False, True, True, True, True, False], [512, 0, 512, 512, 512, 512, 0]),
    ("new", [1, 0, 1, 1, 1, 1, 0], [512, 0, 512, 512, 512, 512, 0]),
    ("new", None, [0] * 7), ("mistral", None, [0] * 7), ("phi3", 3, [0] * 7)])
def test_some_layers_keep_a_window(
        tmp_path: Path, architecture: str, pattern: Any, windows: list[int]) -> None:
    """By the file's pattern or the architecture's; where neither is known, all tokens count."""
    keys = {**SMALL, "block_count": 7, "attention.sliding_window": 512}
    if pattern:
        keys["attention.sliding_window_pattern"] = pattern
    assert layers_of(tmp_path, architecture, keys) == [Layer(128, window) for window in windows]


def test_windows_may_have_lengths_of_their_own(tmp_path: Path) -> None:
    """Keys and values of gemma4 are shorter where there is a window."""
    keys = {**SMALL, "block_count": 3, "attention.head_count_kv": [8, 8, 2],
            "attention.key_length": 512, "attention.value_length": 512,
            "attention.key_length_swa": 256, "attention.value_length_swa": 256,
            "attention.sliding_window": 512,
            "attention.sliding_window_pattern": [True, True, False]}
    assert layers_of(tmp_path, "gemma4", keys) == [
        Layer(8 * 512 * 2, 512), Layer(8 * 512 * 2, 512), Layer(2 * 1024 * 2)]


def test_layers_of_gemma3n_after_the_twentieth_keep_nothing(tmp_path: Path) -> None:
    """They use what the first twenty keep."""
    tokens = [layer.token for layer in layers_of(tmp_path, "gemma3n", {**SMALL, "block_count": 30})]
    assert tokens == [128] * 20 + [0] * 10


@pytest.mark.parametrize(("keys", "token"), [
    ({"attention.head_count_kv": 1, "attention.key_length": 576, "attention.value_length": 512,
      "attention.key_length_mla": 192, "attention.value_length_mla": 128}, 576 * 2),
    ({"attention.head_count_kv": 16, "attention.key_length": 192, "attention.value_length": 128},
     16 * 320 * 2)], ids=["compressed", "plain"])
def test_compressed_attention_keeps_one_key(
        tmp_path: Path, keys: dict[str, int], token: int) -> None:
    """The value is a part of it; older files of the same models have neither."""
    all_keys = {**SMALL, "attention.kv_lora_rank": 512, **keys}
    assert layers_of(tmp_path, "deepseek2", all_keys) == [Layer(token)] * 2


MAMBA = {"ssm.conv_kernel": 4, "ssm.inner_size": 128, "ssm.state_size": 16}
STATE = (3 * 128 + 16 * 128) * 4  # the last three of each convolution, and the state, at 4 bytes
GROUPED = {**MAMBA, "ssm.group_count": 2}
GROUPED_STATE = (3 * (128 + 2 * 2 * 16) + 16 * 128) * 4


@pytest.mark.parametrize(("architecture", "keys", "expected"), [
    ("mamba", {"block_count": 2, "embedding_length": 64, "attention.head_count": 0, **MAMBA},
     [Layer(0, 0, STATE)] * 2),
    ("mamba2", {"block_count": 1, "embedding_length": 64, **GROUPED}, [Layer(0, 0, GROUPED_STATE)]),
    ("granitehybrid", {**SMALL, "attention.head_count_kv": [0, 2], **GROUPED},
     [Layer(0, 0, GROUPED_STATE), Layer(128)]),
    ("falcon-h1", {**SMALL, **MAMBA}, [Layer(128, 0, STATE)] * 2),
    ("new", {**SMALL, "full_attention_interval": 2, **MAMBA}, [Layer(0, 0, STATE), Layer(128)]),
    ("new", {**SMALL, "attention.recurrent_layers": [False, True], **MAMBA},
     [Layer(128), Layer(0, 0, STATE)]),
    ("qwen3next", {**SMALL, "block_count": 5, **MAMBA},
     [Layer(0, 0, STATE)] * 3 + [Layer(128), Layer(0, 0, STATE)]),
    ("rwkv7", {"block_count": 1, "embedding_length": 64, "attention.head_count": 0,
               "wkv.head_size": 8}, [Layer(0, 0, (2 * 64 + 64 * 8) * 4)]),
    ("lfm2", {**SMALL, "attention.head_count_kv": [0, 2], "shortconv.l_cache": 3},
     [Layer(0, 0, 2 * 64 * 4), Layer(128)]),
    ("bert", {**SMALL, "attention.causal": False}, [Layer(0)] * 2)])
def test_recurrent_layers_keep_a_state(
        tmp_path: Path, architecture: str, keys: dict[str, Any], expected: list[Layer]) -> None:
    """In place of tokens, or beside them; a model that reads each text as a whole keeps nothing."""
    assert layers_of(tmp_path, architecture, keys) == expected


@pytest.mark.parametrize(("keys", "inner"), [
    ({"feed_forward_length": 96}, 96), ({"feed_forward_length": [32, 96]}, 96), ({}, 0),
    ({"expert_feed_forward_length": 16, "expert_used_count": 8}, 128), (MAMBA, 128)])
def test_a_token_is_widest_within_a_layer(
        tmp_path: Path, keys: dict[str, Any], inner: int) -> None:
    """In its feed-forward network, or in all the experts that are asked at once."""
    found = shape_of(tmp_path, "llama", {**SMALL, **keys}, words=7)
    assert found and (found.width, found.inner) == (64, inner)
    assert (found.vocabulary, found.generates) == (7, True)


@pytest.mark.parametrize("keys", [
    {"block_count": 0}, {"block_count": 513}, {"block_count": 2**63}, {"block_count": 2**64 - 1},
    {"block_count": -1}, {"block_count": "2"}, {"attention.head_count_kv": 2**63},
    {"attention.head_count_kv": -2}, {"attention.head_count": 2**40},
    {"attention.head_count_kv": [2]}, {"attention.head_count_kv": []},
    {"attention.head_count_kv": [2, -1]}, {"attention.head_count_kv": [2, 2**62]},
    {"attention.head_count_kv": [2.0, 2.0]}, {"attention.head_count_kv": [2] * 2000},
    {"attention.key_length": 2**63}, {"embedding_length": 2**63}, {"ssm.state_size": 2**63},
    {"attention.head_count": 0, "attention.head_count_kv": 0}, {"vocab_size": 2**63},
    {"attention.sliding_window": 2**63}, {"attention.shared_kv_layers": 3},
], ids=str)
def test_what_cannot_be_is_no_shape(tmp_path: Path, keys: dict[str, Any]) -> None:
    """Whatever a file says, nothing is made of a part of it, and nothing takes long."""
    assert shape_of(tmp_path, "llama", {**SMALL, **keys}) is None


def test_a_file_that_says_nothing_has_no_shape() -> None:
    """Such as one that cannot be read."""
    assert shape(file_facts.NOTHING) is None
