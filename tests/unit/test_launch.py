"""What `scripts/serve` serves where no configuration says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.config import load
from app.launcher.demo import SMOLLM2
from app.launcher.launch import models, with_builtin_engines
from app.launcher.memory import available
from app.settings import BUILTIN
from tests.fakes.registry_home import LLAMA, RegistryHome

SHARE = int(available() * 0.8)
GIB = 2**30


@pytest.mark.parametrize("files,expected", [
    ({"a": b"no GGUF", "b": LLAMA[:-1], "c": LLAMA, "d": LLAMA}, ["c", "a", "b", "d"]),
    ({"a": LLAMA, SMOLLM2.name: LLAMA}, [SMOLLM2.name, "a"]),
    ({"a": LLAMA, SMOLLM2.name: LLAMA[:-1]}, ["a", SMOLLM2.name]),
])
def test_a_usable_model_comes_first(
        tmp_path: Path, files: dict[str, bytes], expected: list[str]) -> None:
    """It is the demo model where that is there, else the first one that can be read."""
    home = RegistryHome(tmp_path / "home")
    for name, data in files.items():
        home.add(name, data)
    assert models(home.path) == expected


@pytest.mark.parametrize("environ,budget", [
    ({}, SHARE), ({"LOOP_LOOP_MEMORY_BUDGET": "1GiB"}, GIB),
    ({"LOOP_LOOP_MEMORY_BUDGET": "null"}, None), ({"LOOP_LOOP_ENGINES": "[]"}, SHARE)])
def test_every_model_gets_an_engine_in_bounded_memory(
        environ: dict[str, str], budget: int | None) -> None:
    """80 % of what the machine has is the bound, unless the environment has another, or none."""
    loop = load(with_builtin_engines(environ, load(environ).loop)).loop
    assert [(engine.command, engine.models) for engine in loop.engines] == [(BUILTIN, ("*",))]
    assert loop.memory_budget == budget
