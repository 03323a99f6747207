"""The built-in engine as a managed one: models take turns in memory, and nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import wait
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.processes import command_line, wait_until
from tests.fakes.raw_client import RawAnswer
from tests.fakes.registry_home import PULLED_AT, RegistryHome
from tests.server.calls import CHAT, get, post
from tests.server.engines.calling import crowd, streaming
from tests.server.engines.managed_gateway import ManagedGateway
from tests.server.scraping import settled

pytestmark = pytest.mark.engine
NAMES = ["org/one:Q4_1", "org/two:Q4_1"]
BUILTIN: list[dict[str, Any]] = [{"command": "builtin", "models": ["*"]}]
CLIENTS, ROUNDS = 6, 2
_LOOK = 0.1  # s between two looks; whoever looks all the time takes the engine's CPU away


@pytest.fixture(scope="module")
def home(demo_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A registry that holds the demo model under two names."""
    found = RegistryHome(tmp_path_factory.mktemp("on_demand") / "home")
    for name in NAMES:
        put(demo_model, found, name)
    return found.path


def put(file: Path, home: RegistryHome, name: str) -> None:
    """Pull a model that is on this machine already."""
    directory = home.directory(name)
    directory.mkdir()
    try:
        os.link(file.resolve(), directory / file.name)
    except OSError:  # on another file system
        shutil.copyfile(file, directory / file.name)
    listed = [{"path": file.name, "size": file.stat().st_size, "sha256": "0" * 64}]
    repo, _, quant = name.partition(":")
    home.write_manifest(directory, json.dumps({
        "name": name, "repo": repo, "revision": "main", "commit": "4b1c", "quant": quant,
        "files": listed, "pulledAt": PULLED_AT}).encode())


@pytest.fixture
def gateway(home: Path, tmp_path: Path) -> Iterator[ManagedGateway]:
    """A gateway with room for one of the two models, as it estimates them itself."""
    with ManagedGateway(tmp_path / "unbounded", BUILTIN, home=home) as asked:
        estimate = asked.engine(NAMES[0])["memory_estimate"]
        assert asked.engines()["memory_used"] == 0
    with ManagedGateway(tmp_path / "bounded", BUILTIN, home=home, **{
            "memory-budget": int(estimate * 1.5), "min-residency": "500ms"}) as found:
        yield found


def say(url: str, client: int) -> list[RawAnswer]:
    """What one client asks: the two models in turn, whole and as a stream."""
    answers = []
    for number in range(ROUNDS):
        answers.append(post(url, CHAT, {
            "model": NAMES[(client + number) % 2], "max_tokens": 8, "temperature": 0,
            "stream": (client + number) % 3 == 0,
            "messages": [{"role": "user", "content": f"Count to {client + 3}."}]}))
    return answers


def test_two_models_share_the_memory_of_one(gateway: ManagedGateway) -> None:
    """Clients that alternate between them all get whole answers; only one is ever loaded."""
    assert not [pid for pid in gateway.family() if "app.engines.builtin" in command_line(pid)]
    with crowd(gateway.url) as calls:
        clients = [calls.run(partial(say, gateway.url, client)) for client in range(CLIENTS)]
        while wait(clients, timeout=_LOOK).not_done:
            found = gateway.engines()
            assert found["memory_used"] <= found["memory_budget"]
            assert sum(entry["pid"] is not None for entry in found["engines"]) <= 1
        for client, future in enumerate(clients):
            for number, answer in enumerate(future.result()):
                is_whole(answer, (client + number) % 3 == 0)
    starts = [gateway.engine(name)["starts"] for name in NAMES]
    assert min(starts) >= 1 and sum(starts) <= 2 * ROUNDS
    assert any(0 < (entry["memory"] or 0) < 2 * entry["memory_estimate"]
               for entry in gateway.engines()["engines"])


def is_whole(answer: RawAnswer, stream: bool) -> None:
    """Assert that it is all that was asked for."""
    assert answer.status == 200 and not answer.cut, answer.body
    if stream:
        assert answer.body.endswith(b"data: [DONE]\n\n") and b'"error"' not in answer.body
    else:
        body = answer.json()
        assert body["choices"][0]["message"]["content"]
        assert body["usage"]["completion_tokens"] <= 8


def test_what_the_engine_says_stands_on_the_page(gateway: ManagedGateway) -> None:
    """Of the engine that runs, and of no other; the gateway counts the same tokens."""
    body = {"model": NAMES[0], "max_tokens": 8, "temperature": 0, "stream": True,
            "messages": [{"role": "user", "content": "Count to three."}]}
    assert get(gateway.url, "/metrics").status == 200 and not gateway.engine(NAMES[0])["starts"]
    assert post(gateway.url, CHAT, body).status == 200
    page = settled(gateway.url)
    theirs = {kind: page.by(f"llamacpp:{name}_total", "model") for kind, name in (
        ("prompt", "prompt_tokens"), ("completion", "tokens_predicted"))}
    assert theirs["completion"] == {(NAMES[0],): 8}
    ours = page.by("loop_tokens_total", "kind", "model")
    assert ours == {(kind, NAMES[0]): found[NAMES[0],] for kind, found in theirs.items()}


def test_a_killed_gateway_leaves_no_engine(gateway: ManagedGateway) -> None:
    """Even while it generates."""
    with streaming(gateway.url, NAMES[0], "Tell me a long story."):
        assert any("app.engines.builtin" in command_line(pid) for pid in gateway.family())
        gateway.kill(gateway.pid, *gateway.workers())
        wait_until(lambda: not gateway.family(), "the end of all")
