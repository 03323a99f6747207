"""What an engine says of itself, over HTTP: in /api/show, /api/ps and /v1/models."""

from __future__ import annotations

import json

import pytest

from tests.fakes.engine_steps import reply, silence
from tests.fakes.model_files import TOOL_TALK, weights
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.server.calls import CHAT, HELLO, SHOW, get, post
from tests.server.conftest import StartGateway

PROPS = json.dumps({
    "default_generation_settings": {"n_ctx": 512}, "chat_template": TOOL_TALK,
    "chat_template_caps": {"supports_tools": True}, "modalities": {"vision": True}}).encode()


@pytest.mark.parametrize("says_so", [True, False])
def test_the_engines_word_is_told(
        start_gateway: StartGateway, registry_home: RegistryHome, says_so: bool) -> None:
    """Where it has one; an engine that keeps silent takes nothing away and holds nobody up."""
    registry_home.add("m", weights())
    with RawEngine(reply()) as engine:
        engine.probe_script = reply(200, PROPS) if says_so else silence
        url = start_gateway({"loop": {"home": str(registry_home.path), "engines": [
            {"url": engine.url, "models": ["m"]}]}}).url
        shown = post(url, SHOW, {"model": "m"}).json()
        assert post(url, CHAT, HELLO).status == 200
        [running] = get(url, "/api/ps").json()["models"]
        [model] = get(url, "/v1/models").json()["data"]
        [tag] = get(url, "/api/tags").json()["models"]
    context = 512 if says_so else 4096
    assert shown["model_info"]["llama.context_length"] == context
    assert (running["context_length"], model["context_length"]) == (context, context)
    assert shown["capabilities"] == (
        ["tools", "completion", "vision"] if says_so else ["completion"])
    assert (tag["capabilities"], tag["details"]["context_length"]) == (["completion"], 4096)
