"""Ollama's clients, restated as checks, over what the gateway says of each kind of model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pytest

from app.api.ollama.objects import TagList, expiry, running
from app.api.ollama.show import Asked, show
from app.catalog.facts import ModelFacts
from app.engine_facts import OPENAI, EngineFacts
from app.jsontext import encode
from app.settings import Settings
from tests.fakes.model_files import KINDS, pulled
from tests.fakes.registry_home import RegistryHome
from tests.fakes.strict_json import strict_json
from tests.unit.ollama import client_shapes as client

NOON = datetime(2026, 10, 3, 12, tzinfo=timezone.utc)
ENGINES = {
    "unknown": None, "openai": OPENAI,
    "llama": EngineFacts("llama-server", 2048, supports_tools=True, ftype="Q4_K - Medium"),
}
KNOWN = {"without_metadata": None, "no_model_file": None, "split": 32768}
CONTEXTS = {kind: KNOWN.get(kind, 4096) for kind in KINDS}


@dataclass(frozen=True)
class Documents:
    """One model as clients get it."""

    kind: str
    tag: dict[str, Any]
    show: dict[str, Any]
    running: dict[str, Any]
    context: int | None


def documents(model: ModelFacts, kind: str, engine: EngineFacts | None = None) -> Documents:
    """Everything that the gateway says of a model, through JSON."""
    shown = show(model, Asked(model.name), engine)
    run = running(model, expiry(None, NOON), engine)
    [tag] = strict_json(TagList().document([model]))["models"]
    known, slot = CONTEXTS[kind], engine.slot_context if engine else 0
    return Documents(kind, tag, strict_json(encode(shown)), strict_json(encode(run)),
                     min(known or slot, slot) if slot else known)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of model."""
    return str(request.param)


@pytest.fixture(params=ENGINES)
def told(request: pytest.FixtureRequest, registry_home: RegistryHome, kind: str) -> Documents:
    """What is said of each kind of model, whatever its engine says."""
    return documents(pulled(registry_home, kind), kind, ENGINES[request.param])


def test_roo_code_reads_it(told: Documents) -> None:
    """The one key with a context length is the one that holds, and only tools count."""
    assert client.roo_tag(told.tag) == "org/m:Q4_K_M"
    assert client.roo_show(told.show) == (told.context, "tools" in told.show["capabilities"])


def test_zed_reads_it(told: Documents) -> None:
    """All texts, and the features it has a switch for."""
    assert client.zed_tag(told.tag)["digest"] == told.tag["digest"]
    context, features = client.zed_show(told.show)
    assert context == told.context
    assert features == set(told.show["capabilities"]) & {"tools", "vision", "thinking"}


def test_enchanted_reads_it(told: Documents) -> None:
    """By OllamaKit's structs; it knows a model that sees by its families."""
    assert client.ollama_kit_tag(told.tag) is (told.kind == "vision")
    client.ollama_kit_show(told.show)


def test_copilot_reads_it(told: Documents) -> None:
    """Capabilities are there unasked for, and the context is one that the engine takes."""
    name, context, tools, vision = client.copilot(told.show, "m")
    assert name == "m"
    assert context == (told.context or 32768)
    assert tools is ("tools" in told.show["capabilities"])
    assert vision is ("vision" in told.show["capabilities"])


def test_copilot_shows_the_name_it_asked_for(registry_home: RegistryHome) -> None:
    """Instead of the one in the file, which all quantisations share; others get the file's."""
    model = pulled(registry_home, "normal")
    shown = show(model, Asked("Org/M:q4_k_m", "GitHubCopilotChat/0.38.2"))
    assert client.copilot(shown, "?")[0] == "Org/M:q4_k_m"
    assert "general.basename" not in show(model, Asked("m", "curl/8"))["model_info"]


def test_copilots_handshake_begins_with_a_version() -> None:
    """At least 0.6.4, number by number; Open WebUI reads it so too."""
    parts = [int(part) for part in Settings().server.ollama_version.split(".")]
    assert len(parts) == 3 and parts >= [0, 6, 4]


def test_open_webui_reads_it(told: Documents) -> None:
    """The id has a tag; a model that stays for ever goes in a year that Python knows."""
    assert client.open_webui([told.tag]) == {"org/m:Q4_K_M": "org/m:Q4_K_M"}
    assert client.open_webui_running(told.running).year == 2126


def test_home_assistant_reads_it(told: Documents) -> None:
    """Its sensors have a whole number each."""
    client.home_assistant(told.tag, told.running)
    assert told.running["context_length"] == (told.context or 0)


def test_llm_ollama_tells_all_models_apart(registry_home: RegistryHome) -> None:
    """By digests that no two models share, with or without one in the manifest."""
    files = {kind: [{"path": path, "size": 9} for path in KINDS[kind]] for kind in KINDS}
    listed = [documents(pulled(registry_home, kind, kind), kind) for kind in KINDS]
    listed += [documents(pulled(registry_home, kind, f"x/{kind}", files=files[kind]), kind)
               for kind in KINDS]
    remembered = client.llm_ollama([d.tag for d in listed], [d.show for d in listed])
    assert {"tools", "thinking", "completion"} in remembered.values()
    client.open_webui([d.tag for d in listed])


def test_tags_and_show_agree(registry_home: RegistryHome, kind: str) -> None:
    """As long as no engine knows better."""
    told = documents(pulled(registry_home, kind), kind)
    assert told.tag["details"] == told.show["details"] == told.running["details"]
    assert told.tag["capabilities"] == told.show["capabilities"]


def test_continue_reads_it(told: Documents) -> None:
    """Parameters line by line, and where text can be filled in."""
    parameters, fills_in = client.continue_dev(told.show)
    assert parameters in ({}, {"num_ctx": str(told.context)})
    assert fills_in is (told.kind == "fill_in")


def test_anything_llm_and_page_assist_sort_it(told: Documents) -> None:
    """Embedding models apart from those that chat."""
    embeds = told.kind == "embedding"
    assert client.anything_llm(told.show) == (embeds, told.context)
    assert client.page_assist(told.tag) is not embeds
