"""A new configuration counts for new calls, and nothing that runs notices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.fakes.engine_steps import COMPLETION, hold, reply, send, whole
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawClient
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.fakes.stream_steps import DONE, STOP, Gates, ev
from tests.server.calls import CHAT, HELLO, get, openai_error, post
from tests.server.engines.calling import chat, crowd, send as send_chat, succeeds
from tests.server.gateway_process import GatewayProcess
from tests.server.running.changing import hang_up, reload
from tests.server.stream.asking import read_up_to
from tests.server.stream.worker_facts import WorkerFacts

Entry = dict[str, object]


def listed(gateway: GatewayProcess) -> list[Any]:
    """What GET /engines says of each."""
    return list(get(gateway.url, "/engines").json()["engines"])


def wait_for_queue(gateway: GatewayProcess, calls: int) -> None:
    """Block until so many calls wait for the first engine."""
    wait_until(lambda: listed(gateway)[0]["queued"] == calls, f"{calls} waiting calls")


def entry(engine: RawEngine, *models: str, **keys: object) -> Entry:
    """An entry of `loop.engines`."""
    return {"url": engine.url, "models": list(models), "kind": "openai", **keys}


@pytest.fixture
def other() -> Iterator[RawEngine]:
    """A second engine."""
    with RawEngine(reply(200, b'{"other":true}')) as engine:
        yield engine


@pytest.fixture(scope="module")
def running(shared_engine: RawEngine, tmp_path_factory: pytest.TempPathFactory,
            ) -> Iterator[GatewayProcess]:
    """The one gateway of these tests, whose worker is never another one."""
    home = RegistryHome(tmp_path_factory.mktemp("reload") / "home")
    for name in ("m", "n"):
        home.add(name)
    settings = {"loop": {"home": str(home.path), "engines": [entry(shared_engine, "m")]}}
    with GatewayProcess(tmp_path_factory.mktemp("gateway"), settings) as gateway:
        workers = gateway.workers()
        yield gateway
        assert gateway.workers() == workers


@pytest.fixture(scope="module")
def original(running: GatewayProcess) -> dict[str, Any]:
    """The configuration that it was started with: one engine, for `m`."""
    return deepcopy(running.settings)


@pytest.fixture
def gateway(running: GatewayProcess, original: dict[str, Any], engine: RawEngine) -> GatewayProcess:
    """The gateway as it was started, whatever the test before made of it."""
    running.settings = deepcopy(original)
    reload(running)
    return running


def test_engines_come_and_go(gateway: GatewayProcess, engine: RawEngine, other: RawEngine) -> None:
    """A model that no engine serves any more is unknown; the lists say so too."""
    assert chat(gateway.url, "n").status == 404
    said = reload(gateway, engines=[entry(engine, "m"), entry(other, "n")])
    assert "of its engines 1 are as before, 1 new, 0 gone" in said
    assert succeeds(chat(gateway.url, "n")).json() == {"other": True}
    assert [each["id"] for each in listed(gateway)] == [engine.url, other.url]
    said = reload(gateway, engines=[entry(other, "n")])
    assert "of its engines 1 are as before, 0 new, 1 gone" in said
    assert openai_error(chat(gateway.url, "m"))["code"] == "model_not_found"
    assert [each["id"] for each in listed(gateway)] == [other.url]


def test_names_and_limits_change(gateway: GatewayProcess) -> None:
    """Aliases, the default model, the largest body, how long models stay: for the next call."""
    nameless = {"messages": HELLO["messages"]}
    assert chat(gateway.url, "short").status == post(gateway.url, CHAT, nameless).status + 4 == 404
    reload(gateway, "server", **{"max-body": "1KiB", "ollama-version": "9.8.7"})
    reload(gateway, aliases={"short": "m"}, **{"default-model": "m", "keep-alive": "77h"})
    succeeds(chat(gateway.url, "short"))
    succeeds(post(gateway.url, CHAT, nameless))
    assert post(gateway.url, CHAT, b"{" + b" " * 2000).status == 413
    assert get(gateway.url, "/api/version").json() == {"version": "9.8.7"}
    until = get(gateway.url, "/v1/models").json()["data"][0]["status"]["idle_until"]
    reload(gateway, **{"keep-alive": "99h"})
    assert get(gateway.url, "/v1/models").json()["data"][0]["status"]["idle_until"] > until


def test_the_queue_has_another_size(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Of an engine that is as before, and whose calls wait."""
    gate = threading.Event()
    slow = entry(engine, "m", slots=1)
    reload(gateway, engines=[slow], queue={"size": 0})
    engine.answer_with([hold(gate), send(whole())])
    with crowd(gateway.url) as calls:
        first = calls.chat("m")
        engine.wait_for_requests(1)
        assert chat(gateway.url, "m").status == 429
        reload(gateway, queue={"size": 1})
        second = calls.chat("m")
        wait_for_queue(gateway, 1)
        gate.set()
        assert succeeds(first.result()).body == succeeds(second.result()).body == COMPLETION


def test_an_engine_that_is_as_before_notices_nothing(
        gateway: GatewayProcess, engine: RawEngine, other: RawEngine) -> None:
    """Though its entry has other models and another place: one connection, one stream, no word."""
    succeeds(chat(gateway.url, "m"))
    gates = Gates("chunked", [ev("1"), ev("2"), STOP + DONE])
    engine.answer_with(gates.script)
    with RawClient(gateway.url) as client:
        answer = send_chat(client, "m", "x", stream=True).answer()
        for number, piece in enumerate(gates.pieces):
            assert read_up_to(answer, len(piece)) == piece
            reload(gateway, engines=[entry(other, *"abc"[:number + 1]), entry(engine, "m", "n")])
            gates.seen(number)
        assert answer.whole().cut is False
    engine.answer_with(reply())
    for model in "mnm":
        succeeds(chat(gateway.url, model))
        reload(gateway, engines=[entry(engine, "n", "m"), entry(other, model * 2)])
    assert {request.connection for request in engine.requests} == {1}
    assert not engine.probes


def test_calls_of_an_engine_that_goes(
        gateway: GatewayProcess, engine: RawEngine, other: RawEngine) -> None:
    """The running one ends well, waiting ones are answered by the engine that is there instead."""
    gate = threading.Event()
    reload(gateway, engines=[entry(engine, "m", slots=1)])
    engine.answer_with([hold(gate), send(whole())])
    with crowd(gateway.url) as calls:
        first = calls.chat("m")
        engine.wait_for_requests(1)
        waiting = [calls.chat("m") for _ in range(3)]
        wait_for_queue(gateway, 3)
        reload(gateway, engines=[entry(other, "m", slots=1)])
        assert [succeeds(each.result()).json() for each in waiting] == [{"other": True}] * 3
        found = {each["id"]: each for each in listed(gateway)}
        assert (found[engine.url]["state"], found[engine.url]["running"]) == ("stopping", 1)
        assert found[other.url]["state"] == "ready"
        gate.set()
        assert succeeds(first.result()).body == COMPLETION
    wait_until(lambda: [each["id"] for each in listed(gateway)] == [other.url], "the end of it")
    assert len(engine.requests) == 1


def test_calls_that_wait_for_a_model_that_goes(gateway: GatewayProcess, engine: RawEngine) -> None:
    """They are told so at once; the running one ends well."""
    gate = threading.Event()
    reload(gateway, engines=[entry(engine, "m", slots=1)])
    engine.answer_with([hold(gate), send(whole())])
    with crowd(gateway.url) as calls:
        first = calls.chat("m")
        engine.wait_for_requests(1)
        waiting = calls.chat("m")
        wait_for_queue(gateway, 1)
        reload(gateway, engines=[])
        assert openai_error(waiting.result())["code"] == "model_not_found"
        gate.set()
        succeeds(first.result())


def test_an_engine_that_changes_back(gateway: GatewayProcess, engine: RawEngine) -> None:
    """While its calls run: it has as many slots as ever, and one process or address serves both."""
    gate = threading.Event()
    before = [entry(engine, "m", slots=1)]
    reload(gateway, engines=before)
    engine.answer_with([hold(gate), send(whole())])
    with crowd(gateway.url) as calls:
        first = calls.chat("m")
        engine.wait_for_requests(1)
        reload(gateway, engines=[])
        reload(gateway, engines=before)
        second = calls.chat("m")
        wait_for_queue(gateway, 1)
        gate.set()
        succeeds(first.result()), succeeds(second.result())
    assert len(listed(gateway)) == 1


def test_what_cannot_change_is_named(gateway: GatewayProcess) -> None:
    """And the rest of the same configuration counts."""
    fixed = {"address": "::1", "port": 1, "threads": 3, "body-timeout": "1s",
             "write-timeout": "1s", "stop-timeout": "1s"}
    gateway.settings["server"].update(fixed)
    said = reload(gateway, home="/nowhere", aliases={"short": "m"})
    for key in [*(f"server.{name}" for name in fixed), "loop.home"]:
        assert f"{key} has changed, which counts only after a restart" in said
    succeeds(chat(gateway.url, "short"))
    assert get(gateway.url, "/v1/models").json()["data"]


def test_a_reload_without_a_change(gateway: GatewayProcess) -> None:
    """Is told as such."""
    assert "nothing that can count now has changed" in hang_up(gateway)


def test_nothing_is_left_of_configurations(
        gateway: GatewayProcess, engine: RawEngine, other: RawEngine) -> None:
    """Threads and descriptors are as many as ever after many of them."""
    variants = [[entry(engine, "m")], [entry(other, "m"), entry(engine, "n")]]
    facts = WorkerFacts(gateway)

    def once(number: int) -> None:
        reload(gateway, engines=variants[number % 2], **{"probe-interval": f"{number + 5}s"})
        succeeds(chat(gateway.url, "m"))

    for number in range(4):
        once(number)
    threads, descriptors = facts.threads(), facts.descriptors()
    for number in range(4, 16):
        once(number)
    wait_until(lambda: facts.descriptors() <= descriptors and facts.threads() <= threads,
               f"{threads} threads and {descriptors} descriptors")
