"""What GET /engines, GET /v1/models and GET /api/ps say of engines is the truth."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.engine_steps import reply
from tests.fakes.processes import wait_until
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import get
from tests.server.engines.calling import (
    PS, chat, crowd, not_ready, ollama, streaming, streams_whole, succeeds, unload,
)
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway, engine

PYTHON = Path(sys.executable).name  # the program of every engine here
ATTACHED = ["id", "kind", "models", "state", "slots", "running", "queued", "strikes", "last_error"]
MANAGED = [*ATTACHED, "url", "pid", "memory_estimate", "memory", "idle_until", "starts"]
KEEP = timedelta(minutes=10)


@pytest.fixture(scope="module")
def attached() -> Iterator[RawEngine]:
    """An engine that someone else runs."""
    with RawEngine(reply()) as found:
        found.probe_script = reply(200, b"{}")
        yield found


@pytest.fixture(scope="module")
def gateway(start: Start, attached: RawEngine) -> ManagedGateway:
    """A gateway whose engines are in every state, and that keeps an idle one for ten minutes."""
    return start([
        engine(["org/stopped:Q8_0", "loaded", "hourly", "dropped", "busy", "killed"], slots=2),
        engine("starting", "--after", "@go"), engine("pinned", pinned=True),
        engine("failed", "--exit", "3", "--say", "out of paper"),
        {"url": attached.url, "models": ["attached"], "kind": "openai"},
    ], **{"keep-alive": f"{KEEP.seconds}s"})


def model_of(gateway: ManagedGateway, model: str) -> dict[str, Any]:
    """What GET /v1/models says of its state; the model's own address says the same."""
    listed = {each["id"]: each["status"] for each in get(gateway.url, "/v1/models").json()["data"]}
    assert get(gateway.url, f"/v1/models/{model}").json()["status"]["value"] == listed[
        model]["value"]
    return dict(listed[model])


def running(gateway: ManagedGateway, kind: str = "models") -> dict[str, dict[str, Any]]:
    """The entries of GET /api/ps of one list, by their names in the registry."""
    found = get(gateway.url, PS).json().get(kind, [])
    return {entry["name"].removesuffix(":latest"): entry for entry in found}


def moment(text: str) -> datetime:
    """The moment that a text in the form of RFC 3339 means."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_each_engine_has_an_entry(gateway: ManagedGateway) -> None:
    """Attached ones once, managed ones for each model of the registry."""
    found = gateway.engines()
    assert list(found) == ["memory_budget", "memory_used", "engines"]
    assert {entry["kind"]: list(entry) for entry in found["engines"]} == {
        "attached": ATTACHED, "managed": MANAGED}
    ids = [entry["id"] for entry in found["engines"]]
    assert f"{PYTHON} org/stopped:Q8_0" in ids and f"{PYTHON} failed" in ids
    assert len(ids) == len(set(ids)) == 10
    assert found["memory_budget"] is None


def test_a_stopped_engine(gateway: ManagedGateway) -> None:
    """Has no process and no memory."""
    name = "org/stopped:Q8_0"
    found = gateway.engine(name)
    assert found.pop("memory_estimate") > 0
    assert found == {
        "id": f"{PYTHON} {name}", "kind": "managed", "models": [name], "state": "stopped",
        "slots": 2, "running": 0, "queued": 0, "strikes": 0, "last_error": None, "url": None,
        "pid": None, "memory": None, "idle_until": None, "starts": 0}
    assert model_of(gateway, name)["value"] == "unloaded"
    assert name not in running(gateway)


def test_a_ready_engine(gateway: ManagedGateway) -> None:
    """Has a process, its real memory, and a time until which it stays."""
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    succeeds(chat(gateway.url, "loaded"))
    found = gateway.engine("loaded")
    pid = gateway.journal.one("ready", "loaded").pid
    assert (found["state"], found["starts"], found["running"]) == ("ready", 1, 0)
    assert pid in gateway.programs("loaded")
    assert found["pid"] and found["url"].startswith("http://127.0.0.1:")
    assert 1 << 20 < found["memory"] < 1 << 28
    after = datetime.now(timezone.utc) + timedelta(seconds=1)
    assert before + KEEP <= moment(found["idle_until"]) <= after + KEEP
    status = model_of(gateway, "loaded")
    assert status["value"] == "loaded" and 1 << 20 < status["memory"] < 1 << 28
    assert before + KEEP <= moment(status["idle_until"]) <= after + KEEP
    entry = running(gateway)["loaded"]
    assert 1 << 20 < entry["size"] < 1 << 28
    assert before + KEEP <= moment(entry["expires_at"]) <= after + KEEP


def test_a_request_changes_how_long_it_stays(gateway: ManagedGateway) -> None:
    """In all places where it is told."""
    succeeds(ollama(gateway.url, "hourly", keep_alive="1h"))
    hour = datetime.now(timezone.utc) + timedelta(minutes=59)
    wait_until(lambda: moment(gateway.engine("hourly")["idle_until"]) > hour, "the new time", 5)
    assert moment(running(gateway)["hourly"]["expires_at"]) > hour
    assert moment(model_of(gateway, "hourly")["idle_until"]) > hour


def test_a_busy_engine(gateway: ManagedGateway) -> None:
    """Says how many calls run and wait; it does not become idle meanwhile."""
    gate = gateway.directory / "busy.gate"
    with streaming(gateway.url, "busy", f"until:{gate}") as waiting, crowd(gateway.url) as calls:
        others = [calls.chat("busy", f"until:{gate}") for _ in range(3)]
        gateway.wait_for_queue("busy", 2)
        found = gateway.engine("busy")
        assert (found["running"], found["queued"], found["idle_until"]) == (2, 2, None)
        assert model_of(gateway, "busy")["value"] == "loaded"
        assert "busy" in running(gateway)
        gate.touch()
        assert streams_whole(waiting.answer)
        for future in others:
            succeeds(future.result())
    wait_until(lambda: gateway.engine("busy")["idle_until"], "the time after which it ends", 5)
    assert [gateway.engine("busy")[name] for name in ("running", "queued")] == [0, 0]


def test_a_starting_engine(gateway: ManagedGateway) -> None:
    """Is loading until it is ready."""
    with crowd(gateway.url) as calls:
        waiting = calls.chat("starting")
        port = gateway.journal.one("started", "starting").more["port"]
        found = gateway.wait_for_state("starting", "starting")
        assert found["pid"] and found["starts"] == 1
        assert model_of(gateway, "starting")["value"] == "loading"
        assert "starting" in running(gateway, "loading")
        assert "starting" not in running(gateway)
        (gateway.directory / f"go.{port}").touch()
        succeeds(waiting.result())
    assert "starting" in running(gateway) and not running(gateway, "loading")


def test_a_failed_engine(gateway: ManagedGateway) -> None:
    """Says why, everywhere."""
    not_ready(chat(gateway.url, "failed"))
    found = gateway.engine("failed")
    assert (found["state"], found["pid"], found["memory"]) == ("failed", None, None)
    status = model_of(gateway, "failed")
    assert status["value"] == "failed"
    for said in (found["last_error"], status["error"], running(gateway, "failed")[
            "failed"]["error"]):
        assert "out of paper" in said and "engine_command" not in said
    assert "failed" not in running(gateway)


def test_an_attached_engine(gateway: ManagedGateway, attached: RawEngine) -> None:
    """Counts as loaded for a while after its last use."""
    assert model_of(gateway, "attached")["value"] == "unloaded"
    succeeds(chat(gateway.url, "attached"))
    expected = {
        "id": attached.url, "kind": "attached", "models": ["attached"], "state": "ready",
        "slots": None, "running": 0, "queued": 0, "strikes": 0, "last_error": None}
    wait_until(lambda: gateway.engine("attached") == expected, "the end of the call")
    assert model_of(gateway, "attached")["value"] == "loaded"
    assert "attached" in running(gateway)


def test_a_pinned_engine(gateway: ManagedGateway) -> None:
    """Has no time after which it ends."""
    succeeds(chat(gateway.url, "pinned"))
    assert gateway.engine("pinned")["idle_until"] is None
    assert moment(running(gateway)["pinned"]["expires_at"]).year > datetime.now().year + 50


def test_an_unloaded_engine(gateway: ManagedGateway) -> None:
    """Is gone from all lists once its process is."""
    succeeds(chat(gateway.url, "dropped"))
    assert unload(gateway.url, "dropped").status == 200
    assert gateway.wait_for_state("dropped", "stopped")["memory"] is None
    assert model_of(gateway, "dropped")["value"] == "unloaded"
    assert "dropped" not in running(gateway)


def test_an_engine_that_somebody_killed(gateway: ManagedGateway) -> None:
    """Is not said to be loaded, without a call that finds out; the next call starts it."""
    succeeds(chat(gateway.url, "killed"))
    os.kill(gateway.journal.one("ready", "killed").pid, signal.SIGKILL)
    found = gateway.wait_for_state("killed", "failed")
    assert found["pid"] is None and found["last_error"]
    assert model_of(gateway, "killed")["value"] == "failed"
    assert "killed" not in running(gateway) and "killed" in running(gateway, "failed")
    succeeds(chat(gateway.url, "killed"))
    found = gateway.engine("killed")
    assert (found["state"], found["starts"]) == ("ready", 2)
    assert "killed" in running(gateway) and "killed" not in running(gateway, "failed")
