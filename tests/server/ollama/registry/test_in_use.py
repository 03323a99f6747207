"""Models that calls use are removed and replaced after these calls, and their engine's end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawClient, request_bytes
from tests.fakes.whole_gguf import OTHER, SMALL
from tests.server.calls import JSON, get, to_bytes
from tests.server.engines.calling import (
    chat, crowd, ollama, streaming, streams_whole, succeeds,
)
from tests.server.engines.managed_gateway import ManagedGateway, engine
from tests.server.ollama.registry.asking import DELETE, Registered

MODELS = ["plain", "pinned", "kept", "copied"]
LATE = ["late-deleted", "late-replaced"]  # whose engines listen once a test lets them


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> ManagedGateway:
    """A gateway that would keep its engines for ever."""
    entries = [engine("pinned", pinned=True), engine(["plain", "kept", "copied"]),
               engine(LATE, "--after", "@go")]
    with ManagedGateway(tmp_path_factory.mktemp("in-use"), entries,
                        **{"keep-alive": "10h"}) as process:
        yield process


@pytest.fixture
def served(gateway: ManagedGateway) -> Registered:
    """Its registry, in which all models are small ones."""
    registered = Registered(gateway.url, gateway.home)
    for name in [*MODELS, *LATE]:
        registered.put(name, SMALL)
    return registered


def file_of(served: Registered, name: str) -> Path:
    """What the engine has opened."""
    return served.entry(name).first_file


@pytest.mark.parametrize("model", ["plain", "pinned"])
def test_a_running_answer_is_not_cut(
        gateway: ManagedGateway, served: Registered, model: str) -> None:
    """It ends, then its engine, then the model is gone; new calls do not find it meanwhile."""
    gate, file = gateway.directory / f"{model}.gate", file_of(served, model)
    with streaming(gateway.url, model, f"until:{gate}") as waiting, crowd(gateway.url) as calls:
        deleted = calls.run(lambda: served.delete(model))
        wait_until(lambda: chat(gateway.url, model).status == 404, "the model to be refused")
        assert not deleted.done() and file.exists() and gateway.programs(model)
        gate.touch()
        assert len(streams_whole(waiting.answer)) == 3
        assert deleted.result().status == 200
    assert not file.exists() and not gateway.programs(model)
    assert f"{model}:latest" not in served.names()
    assert model not in str(get(gateway.url, "/api/ps").json()["models"])


def test_a_client_that_does_not_wait(gateway: ManagedGateway, served: Registered) -> None:
    """Takes its wish back: the model stays and serves."""
    gate = gateway.directory / "kept.gate"
    with streaming(gateway.url, "kept", f"until:{gate}") as waiting:
        with RawClient(gateway.url) as client:
            body = to_bytes({"model": "kept"})
            client.send(request_bytes("DELETE", DELETE, [("Host", client.host), *JSON], body))
            wait_until(lambda: chat(gateway.url, "kept").status == 404, "the model to be refused")
        wait_until(lambda: get(gateway.url, "/v1/models/kept").status == 200, "the list")
        gate.touch()
        assert len(streams_whole(waiting.answer)) == 3
    wait_until(lambda: chat(gateway.url, "kept").status == 200, "the model to serve")


def test_an_engine_gets_the_new_files(gateway: ManagedGateway, served: Registered) -> None:
    """Of a model that another one takes the place of; the same files change nothing."""
    succeeds(chat(gateway.url, "copied"))
    [before] = gateway.programs("copied")
    assert served.copy("kept", "copied").status == 200
    assert gateway.programs("copied") == [before]
    served.put("other", OTHER)
    assert served.copy("other", "copied").status == 200
    assert gateway.programs("copied") == []
    succeeds(chat(gateway.url, "copied"))
    assert file_of(served, "copied").read_bytes() == OTHER


@pytest.mark.parametrize("model", LATE)
def test_a_start_is_waited_for(
        gateway: ManagedGateway, served: Registered, model: str) -> None:
    """A chat that was there before is answered once the engine is up; later ones are not."""
    change = served.delete if model == LATE[0] else lambda name: served.copy("other", name)
    served.put("other", OTHER)
    with crowd(gateway.url) as calls:
        waiting = calls.ask(ollama, model)
        port = gateway.journal.wait_for("started", model)[-1].more["port"]
        changed = calls.run(lambda: change(model))
        wait_until(lambda: ollama(gateway.url, model, keep_alive="?").status == 404,
                   "the model to be refused rather than the field")
        (gateway.directory / f"go.{port}").touch()
        succeeds(waiting.result())
        assert changed.result().status == 200
    assert not gateway.programs(model)
