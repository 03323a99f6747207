"""The entries of GET /v1/models: OpenAI's four fields, then what a model takes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from openai.types import Model

from app.api.openai.response import model_object
from app.engine_facts import EngineFacts
from app.model_status import UNLOADED, ModelStatus
from tests.fakes.model_files import KINDS, pulled
from tests.fakes.registry_home import RegistryHome

LOADED = ModelStatus("loaded", datetime(2026, 10, 3, 12, tzinfo=timezone.utc), memory=5)
FOUR = {"id": "org/m:Q4_K_M", "object": "model", "created": 1790847000, "owned_by": "loop"}


def size(kind: str) -> int:
    """The bytes of all files."""
    return sum(map(len, KINDS[kind].values()))


@pytest.mark.parametrize(("kind", "engine", "context", "meta"), [
    ("normal", None, 4096, {"n_ctx_train": 4096, "n_params": 7_000_000}),
    ("normal", EngineFacts("llama-server", 2048), 2048,
     {"n_ctx_train": 4096, "n_params": 7_000_000}),
    ("split", None, 32768, {"n_ctx_train": 32768, "n_params": 3_000_000}),
    ("without_metadata", None, None, {}),
    ("without_metadata", EngineFacts("llama-server", 2048), 2048, {}),
], ids=str)
def test_an_entry_tells_what_a_model_takes(
        registry_home: RegistryHome, kind: str, engine: EngineFacts | None, context: int | None,
        meta: dict[str, Any]) -> None:
    """After the four fields; what is not known is left out."""
    takes = {"context_length": context, "max_model_len": context} if context else {}
    expected = {**FOUR, **takes, "meta": {**meta, "size": size(kind), "ftype": "Q4_K_M"},
                "status": {"value": "unloaded"}}
    found = model_object(pulled(registry_home, kind), UNLOADED, engine)
    assert found == expected
    assert list(found) == list(expected) and list(found["meta"]) == list(expected["meta"])


@pytest.mark.parametrize("kind", KINDS)
def test_the_official_client_reads_an_entry(registry_home: RegistryHome, kind: str) -> None:
    """Its own fields strictly, the others as they are; nothing is null."""
    found = model_object(pulled(registry_home, kind), LOADED)
    read = Model.model_validate(found, strict=True)
    assert read.model_dump(exclude_unset=True) == found
    assert None not in [*found.values(), *found["meta"].values()]


@pytest.mark.parametrize(("status", "said"), [
    (UNLOADED, {"value": "unloaded"}),
    (ModelStatus("loading"), {"value": "loading"}),
    (ModelStatus("failed", error="it fell"), {"value": "failed", "error": "it fell"}),
    (LOADED, {"value": "loaded", "memory": 5, "idle_until": "2026-10-03T12:00:00Z"}),
    (replace(LOADED, in_use=True), {"value": "loaded", "memory": 5}),
    (ModelStatus("loaded"), {"value": "loaded"}),
], ids=str)
def test_an_entry_tells_what_the_engine_does(
        registry_home: RegistryHome, status: ModelStatus, said: dict[str, Any]) -> None:
    """While calls run nobody knows until when it will be idle."""
    assert model_object(pulled(registry_home, "normal"), status)["status"] == said
