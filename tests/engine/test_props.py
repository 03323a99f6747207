"""What the real engine says of itself agrees with what its model's file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog import quantization
from app.catalog.capabilities import capabilities
from app.catalog.facts import FactsCache
from app.engine_facts import EngineFacts
from app.engines.builtin import SLOT_CONTEXT
from app.engines.client import EngineClient
from app.engines.props import LIMITS, PropsCache, asking
from tests.engine.conftest import ALIAS
from tests.engine.engine_process import EngineProcess

pytestmark = pytest.mark.engine


@pytest.fixture
def engine_facts(shared_engine: EngineProcess) -> EngineFacts:
    """The facts as they come over the wire, within the limits of a question."""
    client = EngineClient(shared_engine.url, None, LIMITS, connections=1)
    found = PropsCache(asking(client), None).of(ALIAS)
    assert found is not None
    return found


def test_it_is_known_by_its_props(engine_facts: EngineFacts, demo_model: Path) -> None:
    """As a llama-server with this model and this much context for each call."""
    assert engine_facts.is_llama_server and engine_facts.described
    assert engine_facts.slot_context == SLOT_CONTEXT
    assert Path(engine_facts.model_path).samefile(demo_model)
    assert engine_facts.media_marker


def test_it_agrees_with_the_file(engine_facts: EngineFacts, demo_model: Path) -> None:
    """In template, quantisation and capabilities; the file's tensors are counted."""
    file = FactsCache().of(demo_model)
    assert engine_facts.chat_template == file.template
    assert quantization.of_engine(engine_facts.ftype) == "Q4_1"
    assert quantization.of_file_type(file.number("general.file_type") or -1) == "Q4_1"
    assert capabilities(file) == capabilities(file, engine=engine_facts) == ("completion",)
    assert file.parameters == 134_515_008
