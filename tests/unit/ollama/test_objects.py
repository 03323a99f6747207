"""The objects of /api/tags and /api/ps, field by field."""

from __future__ import annotations

import gc
import weakref
from datetime import datetime, timedelta, timezone

import pytest

from app.api.ollama.objects import TagList, details, expiry, running, tag
from app.engine_facts import EngineFacts
from tests.fakes.model_files import KINDS, pulled
from tests.fakes.registry_home import PULLED_AT, RegistryHome
from tests.fakes.strict_json import strict_json

NOON = datetime(2026, 10, 3, 12, tzinfo=timezone.utc)
DETAILS = {"parent_model": "", "format": "gguf", "family": "llama", "families": ["llama"],
           "parameter_size": "7M", "quantization_level": "Q4_K_M", "context_length": 4096,
           "embedding_length": 256}
ENGINE = EngineFacts("llama-server", 2048, ftype="Q6_K")


def test_a_tag_has_ollamas_fields_in_their_order(registry_home: RegistryHome) -> None:
    """What the manifest and the files say, as one document."""
    model = pulled(registry_home, "normal")
    size, digest = len(KINDS["normal"]["model.gguf"]), model.entry.first.sha256
    expected = {"name": "org/m:Q4_K_M", "model": "org/m:Q4_K_M", "modified_at": PULLED_AT,
                "size": size, "digest": digest, "details": DETAILS, "capabilities": ["completion"]}
    assert tag(model) == expected
    assert list(tag(model)) == list(expected)
    assert list(tag(model)["details"]) == list(DETAILS)


@pytest.mark.parametrize(("kind", "family", "size", "lengths"), [
    ("without_metadata", "unknown", "", {}), ("no_model_file", "unknown", "", {}),
    ("split", "qwen2", "3M", {"context_length": 32768})])
def test_what_is_not_known_is_not_told(registry_home: RegistryHome, kind: str, family: str,
                                       size: str, lengths: dict[str, int]) -> None:
    """Texts are there, empty if need be; lengths are left out."""
    assert details(pulled(registry_home, kind)) == {
        "parent_model": "", "format": "gguf", "family": family, "families": [family],
        "parameter_size": size, "quantization_level": "Q4_K_M", **lengths}


def test_a_name_gets_its_tag(registry_home: RegistryHome) -> None:
    """Ollama's clients show one with every name."""
    model = pulled(registry_home, "normal", "foo")
    assert tag(model)["name"] == tag(model)["model"] == "foo:latest"


def test_a_running_model_tells_what_its_engine_takes(registry_home: RegistryHome) -> None:
    """In both places that have a context length; where its weights lie is not known."""
    model = pulled(registry_home, "normal")
    expected = {"name": "org/m:Q4_K_M", "model": "org/m:Q4_K_M", "size": model.entry.size,
                "digest": model.digest, "details": {**DETAILS, "context_length": 2048},
                "expires_at": "2026-10-03T12:00:00Z", "size_vram": 0, "context_length": 2048}
    assert running(model, NOON, ENGINE) == expected
    assert list(running(model, NOON, ENGINE)) == list(expected)
    assert running(model, NOON)["context_length"] == 4096
    late = NOON + timedelta(microseconds=250)
    assert running(model, late)["expires_at"] == "2026-10-03T12:00:00.000250Z"


@pytest.mark.parametrize(("at", "year"), [
    (None, 2126), (datetime.max.replace(tzinfo=timezone.utc), 2126),
    (NOON + timedelta(days=365), 2027), (NOON - timedelta(days=365), 2025)])
def test_for_ever_is_a_century(at: datetime | None, year: int) -> None:
    """Readers of dates end at the year 9999, and so does Python's."""
    assert expiry(at, NOON).year == year


def test_a_list_has_its_models_in_their_order(registry_home: RegistryHome) -> None:
    """Each object is the same as by itself; no models are an empty list."""
    models = [pulled(registry_home, kind, kind) for kind in ("split", "normal", "vision")]
    tags = TagList()
    for _ in range(2):
        assert strict_json(tags.document(models)) == {"models": [tag(model) for model in models]}
    assert tags.document([]) == b'{"models":[]}'


def test_a_list_forgets_models_that_are_gone(registry_home: RegistryHome) -> None:
    """What was made of a model keeps it from nothing."""
    tags, model = TagList(), pulled(registry_home, "normal")
    tags.document([model])
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
