"""The context that a command gives, and the memory that an engine is estimated to need for it."""

from __future__ import annotations

import pytest

from app.catalog.footprint import estimate
from app.catalog.model_facts import ModelFacts
from app.engines.context import context_of, memory_of
from tests.fakes.model_files import projector, pulled
from tests.fakes.registry_home import RegistryHome
from tests.fakes.shaped_models import shaped

SMALL = {"block_count": 2, "embedding_length": 64, "attention.head_count": 4}
START = ["llama-server", "-m", "{file}", "--port", "{port}"]
SLOTS = 3


def model_of(home: RegistryHome, trained: int | None = 8192, **keys: int | bool) -> ModelFacts:
    """A pulled model that was trained for so many tokens."""
    told = {key.replace("__", "."): value for key, value in keys.items()}
    context = {} if trained is None else {"context_length": trained}
    return pulled(home, {"model.gguf": shaped("llama", {**SMALL, **context, **told}, 1000)})


@pytest.mark.parametrize(("options", "context"), [
    (["-c", "16384"], 16384), (["--ctx-size", "16384"], 16384), (["--ctx-size=16384"], 16384),
    (["--ctx_size", "16384"], 16384), (["-c", "1024", "-c", "2048"], 2048),
    (["--ctx-size", "1024", "-c", "2048", "-np", "4"], 2048), (["-c", "0"], 8192), ([], 8192),
    (["-c", "1024", "-c", "0"], 8192), (["-c"], 8192), (["-c", "-1"], 8192), (["-c", "x"], 8192),
    (["-c", "{slots}"], 8192), (["-c16384"], 8192), (["-ctk", "4096"], 8192), (["-c="], 8192),
    (["-c", "1" * 15], int("1" * 15)), (["-c", "9" * 400], 8192)])
def test_llama_server_shares_its_context_among_slots(
        registry_home: RegistryHome, options: list[str], context: int) -> None:
    """As its options say, the last of them; 0, nothing and nonsense mean the trained length."""
    assert context_of(START + options, model_of(registry_home), SLOTS) == context


@pytest.mark.parametrize(("options", "context"), [
    (["--max-model-len", "2048"], 2048), (["--max-model-len=2048"], 2048),
    (["--max_model_len", "2k"], 2000), (["--max-model-len", "2K"], 2048),
    (["--max-model-len", "1.5k"], 1500), (["--max-model-len", "1m"], 10**6)])
def test_vllm_is_told_the_context_of_one_call(
        registry_home: RegistryHome, options: list[str], context: int) -> None:
    """All slots together have as many times more; auto means the trained length."""
    command, model = ["vllm", "serve", "{file}"], model_of(registry_home)
    assert context_of(command + options, model, SLOTS) == SLOTS * context
    assert context_of([*command, "--max-model-len", "auto"], model, SLOTS) == 8192


def test_a_shell_may_stand_between(registry_home: RegistryHome) -> None:
    """Its own -c is no context."""
    model = model_of(registry_home)
    shell = ["bash", "-c", "exec llama-server -m '{file}' -c 2048 --port {port}"]
    assert context_of(shell, model, SLOTS) == 2048
    assert context_of(["sh", "-c", "exec llama-server --port {port}"], model, SLOTS) == 8192


@pytest.mark.parametrize("command", [
    ["builtin"],
    ["python3", "-m", "app.engines.builtin", "--model", "{file}", "--parallel", "3"]])
@pytest.mark.parametrize(("trained", "slot"), [
    (8192, 4096), (4096, 4096), (512, 512), (None, 4096)])
def test_the_builtin_engine_has_4096_tokens_a_slot(
        registry_home: RegistryHome, command: list[str], trained: int | None, slot: int) -> None:
    """Or what the model was trained for, if that is less."""
    assert context_of(command, model_of(registry_home, trained), SLOTS) == SLOTS * slot


def test_the_builtin_engine_may_be_told_its_context(registry_home: RegistryHome) -> None:
    """Of all slots together."""
    command = ["python3", "-m", "app.engines.builtin", "--ctx", "2048"]
    assert context_of(command, model_of(registry_home), SLOTS) == 2048


def test_where_nobody_says_it_is_that_of_the_builtin_engine(registry_home: RegistryHome) -> None:
    """Neither the command nor the file."""
    assert context_of(START, model_of(registry_home, None), SLOTS) == SLOTS * 4096


@pytest.mark.parametrize(("options", "batch", "embeds"), [
    ([], 512, False), (["-ub", "64"], 64, False), (["--ubatch-size=2048"], 2048, False),
    (["--embedding"], 512, True), (["--embeddings", "--ubatch-size", "1024"], 1024, True)])
def test_memory_is_estimated_for_what_the_command_says(
        registry_home: RegistryHome, options: list[str], batch: int, embeds: bool) -> None:
    """How much is computed at once, and whether texts are embedded."""
    model = model_of(registry_home)
    expected = estimate(model, 2048, SLOTS, batch, embeds)
    assert memory_of([*START, "-c", "2048", *options], model, SLOTS) == expected


@pytest.mark.parametrize(("keys", "trained", "batch"), [
    ({}, 8192, 256), ({"pooling_type": 3}, 8192, 256), ({"pooling_type": 1}, 8192, 2048),
    ({"pooling_type": 1, "attention__causal": False}, 512, 512), ({"pooling_type": 2}, 64, 256)])
def test_the_builtin_engine_computes_few_tokens_at_once(
        registry_home: RegistryHome, keys: dict[str, int | bool], trained: int, batch: int) -> None:
    """Unless a text must be seen as a whole; texts are always embedded."""
    model = model_of(registry_home, trained, **keys)
    context = SLOTS * min(trained, 4096)
    assert memory_of(["builtin"], model, SLOTS) == estimate(model, context, SLOTS, batch, True)


def test_the_builtin_engine_sees_a_picture_at_once(registry_home: RegistryHome) -> None:
    """Those of some models are more than it takes of a text at once."""
    files = {"model.gguf": shaped("llama", {**SMALL, "context_length": 4096}, 1000),
             "mmproj.gguf": projector(vision=True)}
    model = pulled(registry_home, files)
    assert memory_of(["builtin"], model, 1) == estimate(model, 4096, 1, 512, embeds=True)


def test_no_slots_are_one(registry_home: RegistryHome) -> None:
    """However an engine may be described."""
    model = model_of(registry_home)
    assert memory_of(["builtin"], model, 0) == memory_of(["builtin"], model, 1)
