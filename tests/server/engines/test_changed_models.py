"""Models that change or go while their engine runs: it ends after its calls, pinned or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.catalog.store import entries
from tests.fakes.processes import wait_until
from tests.fakes.whole_gguf import OTHER, SMALL
from tests.server.calls import get, openai_error
from tests.server.engines.calling import PS, chat, streaming, streams_whole, succeeds
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine
from tests.server.ollama.registry.asking import Registered

CHANGES = ["manifest", "file"]
KINDS = ["plain", "pinned"]
FILE = ("--file", "{file}")


def name(kind: str, change: str) -> str:
    """The model that is changed in this way."""
    return f"{kind}-{change}"


@pytest.fixture(scope="module")
def gateway(start: Start) -> ManagedGateway:
    """A gateway that looks after its engines all the time and would keep them for ever."""
    gateway = start([
        engine([name("plain", change) for change in [*CHANGES, "gone", "same"]], *FILE),
        engine([name("pinned", change) for change in [*CHANGES, "gone"]], *FILE, pinned=True),
    ], **{"keep-alive": "10h", "probe-interval": "100ms"})
    for entry in gateway.engines()["engines"]:
        Registered(gateway.url, gateway.home).put(entry["models"][0], SMALL)
    return gateway


def opened(gateway: ManagedGateway, model: str) -> list[Path]:
    """The file that each engine of the model was started with, in their order."""
    found = [entry.more["arguments"] for entry in gateway.journal.entries("started", model)]
    return [Path(words[words.index("--file") + 1]) for words in found]


def change(gateway: ManagedGateway, model: str, how: str) -> None:
    """Have other weights under the model's name: another entry, or another file of this one."""
    served = Registered(gateway.url, gateway.home)
    if how == "manifest":
        served.put(model, OTHER, "other.gguf")
        return
    file = served.entry(model).first_file
    file.unlink()
    file.write_bytes(OTHER)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", CHANGES)
def test_the_next_call_gets_the_new_files(gateway: ManagedGateway, kind: str, how: str) -> None:
    """The stream that runs goes on to its end, then its engine ends without another word."""
    model = name(kind, how)
    gate = gateway.directory / f"{model}.gate"
    with streaming(gateway.url, model, f"until:{gate}") as waiting:
        change(gateway, model, how)
        succeeds(chat(gateway.url, model))
        assert not gateway.journal.entries("terminated", model)
        gate.touch()
        assert len(streams_whole(waiting.answer)) == 3
    gateway.journal.one("terminated", model)
    assert gateway.wait_for_state(model, "stopped")["last_error"] is None
    succeeds(chat(gateway.url, model))
    [_, after] = opened(gateway, model)
    assert after.read_bytes() == OTHER
    assert gateway.engine(model)["starts"] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_of_a_model_that_is_gone_ends(gateway: ManagedGateway, kind: str) -> None:
    """New calls do not find the model; the one that runs is answered, and then nothing is left."""
    model = name(kind, "gone")
    gate = gateway.directory / f"{model}.gate"
    with streaming(gateway.url, model, f"until:{gate}") as waiting:
        entries.remove(gateway.home, model)
        wait_until(lambda: chat(gateway.url, model).status == 404, "the model to be refused")
        assert openai_error(chat(gateway.url, model))["code"] == "model_not_found"
        assert gateway.engine(model)["state"] == "ready"
        gate.touch()
        assert len(streams_whole(waiting.answer)) == 3
    gateway.journal.one("terminated", model)
    wait_until(lambda: not gateway.programs(model), "the end of its process")
    wait_until(lambda: model not in str(gateway.engines()), "the end of its entry")
    assert model not in str(get(gateway.url, PS).json())


def test_a_file_that_is_not_there_changes_nothing(gateway: ManagedGateway) -> None:
    """The engine has it open: it serves on, and is the same one once the file is back."""
    model, other = name("plain", "same"), name("plain", "file")
    succeeds(chat(gateway.url, model))
    succeeds(chat(gateway.url, other))
    ended = len(gateway.journal.entries("terminated", other))
    file = Registered(gateway.url, gateway.home).entry(model).first_file
    aside = file.with_name("aside")
    file.rename(aside)
    change(gateway, other, "file")  # by which it is seen that all engines have been looked at
    gateway.journal.wait_for("terminated", other, count=ended + 1)
    aside.rename(file)
    succeeds(chat(gateway.url, model))
    assert gateway.engine(model)["starts"] == 1
