"""Attached engines that are still loading their model are waited for, and nobody else is."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from tests.fakes.engine_steps import JSON_TYPE, reply
from tests.fakes.processes import wait_until
from tests.fakes.raw_engine import Exchange, RawEngine
from tests.fakes.stream_steps import DONE, STOP, ev, stream
from tests.server.calls import get, openai_error
from tests.server.engines.calling import (
    PS, chat, crowd, ollama, retry_after, streams_whole, succeeds, together,
)
from tests.server.engines.conftest import Start
from tests.server.engines.managed_gateway import ManagedGateway

LOADING = json.dumps({"error": {
    "code": 503, "message": "Loading model", "type": "unavailable_error"}}).encode()
BUSY = json.dumps({"error": {"message": "no slot available"}}).encode()


class LoadingEngine(RawEngine):
    """An engine that answers /v1/models at once, and everything else once it is `loaded`."""

    def __init__(self) -> None:
        super().__init__(self._work)
        self.loaded = threading.Event()
        self.refused = 0
        self.probe_script = self._probe

    def _work(self, exchange: Exchange) -> None:
        if not self.loaded.is_set():
            self.refused += 1
            reply(503, LOADING)(exchange)
        elif b'"stream":true' in exchange.request.body.replace(b" ", b""):
            for step in stream("chunked", [ev("a"), STOP, DONE]):
                step(exchange)
        else:
            reply()(exchange)

    def _probe(self, exchange: Exchange) -> None:
        if exchange.request.path == "/v1/models" or self.loaded.is_set():
            reply(200, b'{"object":"list","data":[]}')(exchange)
        else:
            reply(503, LOADING)(exchange)


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, RawEngine]]:
    """Engines that load, of which one never ends, one that is ready, one that is full."""
    with LoadingEngine() as loading, LoadingEngine() as endless, LoadingEngine() as quiet, \
            LoadingEngine() as late, RawEngine(reply()) as ready, RawEngine(reply()) as full:
        yield {"loading": loading, "endless": endless, "quiet": quiet, "late": late,
               "ready": ready, "full": full}


@pytest.fixture(scope="module")
def gateway(start: Start, engines: dict[str, RawEngine]) -> ManagedGateway:
    """A gateway that waits a moment for two of them, and long for the others."""
    limits = {"endless": "1s", "late": "300ms"}
    return start([{"url": engine.url, "models": [name], "start-timeout": limits.get(name, "1m")}
                  for name, engine in engines.items()], **{"probe-interval": "200ms"})


def test_calls_wait_until_it_is_loaded(
        gateway: ManagedGateway, engines: dict[str, RawEngine]) -> None:
    """Whole answers and streams, of both APIs; other models are answered meanwhile."""
    loading = engines["loading"]
    assert isinstance(loading, LoadingEngine)
    with crowd(gateway.url) as calls:
        whole, streamed = calls.chat("loading"), calls.chat("loading", stream=True)
        native = calls.ask(ollama, "loading")
        wait_until(lambda: loading.refused, "the first call")
        for _ in range(3):
            succeeds(chat(gateway.url, "ready"))
        wait_until(lambda: state(gateway, "loading") == "loading", "the state to be told")
        assert not (whole.done() or streamed.done() or native.done())
        loading.loaded.set()
        succeeds(whole.result())
        succeeds(native.result())
        assert streams_whole(streamed.result()) == ["a"]
    assert state(gateway, "loading") == "ready"


def listed(gateway: ManagedGateway, kind: str) -> list[str]:
    """The names in one list of GET /api/ps."""
    return [each["name"] for each in get(gateway.url, PS).json().get(kind, [])]


def test_what_loads_is_listed(gateway: ManagedGateway, engines: dict[str, RawEngine]) -> None:
    """Whether a call waits for it or nobody has asked yet, and no longer than it loads."""
    quiet = engines["quiet"]
    assert isinstance(quiet, LoadingEngine)
    wait_until(lambda: "quiet:latest" in listed(gateway, "loading"), "a probe to tell it")
    assert state(gateway, "quiet") == "loading" and not quiet.refused
    assert get(gateway.url, "/v1/models/quiet").json()["status"]["value"] == "loading"
    with crowd(gateway.url) as calls:
        waiting = calls.chat("quiet")
        wait_until(lambda: quiet.refused, "the call")
        assert "quiet:latest" in listed(gateway, "loading")
        assert "quiet:latest" not in listed(gateway, "models")
        quiet.loaded.set()
        succeeds(waiting.result())
    wait_until(lambda: "quiet:latest" in listed(gateway, "models"), "a look at its use")
    assert "quiet:latest" not in listed(gateway, "loading")


def test_the_end_of_loading_is_seen_without_a_call(
        gateway: ManagedGateway, engines: dict[str, RawEngine]) -> None:
    """Also where the calls that waited have all been given up."""
    late = engines["late"]
    assert isinstance(late, LoadingEngine)
    assert chat(gateway.url, "late").status == 503
    assert "late:latest" in listed(gateway, "loading")
    late.loaded.set()
    wait_until(lambda: state(gateway, "late") == "ready", "a probe to tell it")
    assert "late:latest" not in str(get(gateway.url, PS).json())


def state(gateway: ManagedGateway, model: str) -> str:
    """What GET /engines says of the model's engine."""
    return str(gateway.engine(model)["state"])


def test_an_engine_that_never_ends_loading_is_given_up(gateway: ManagedGateway) -> None:
    """After its start-timeout, with what it says."""
    openai, native = together(lambda: chat(gateway.url, "endless"),
                              lambda: ollama(gateway.url, "endless"))
    for answer in openai, native:
        assert answer.status == 503 and retry_after(answer) >= 1, answer.body
    assert openai_error(openai)["code"] == "service_unavailable"


@pytest.mark.parametrize(("body", "headers"), [
    (LOADING, [("Retry-After", "30")]), (BUSY, [("Retry-After", "30")]), (BUSY, [])], ids=repr)
def test_another_503_passes_at_once(
        gateway: ManagedGateway, engines: dict[str, RawEngine], body: bytes,
        headers: list[tuple[str, str]]) -> None:
    """One that says when to come back, or speaks of something else, is the client's to know."""
    engines["full"].answer_with(reply(503, body, [*JSON_TYPE, *headers]))
    answer = chat(gateway.url, "full")
    assert (answer.status, answer.body) == (503, body)
    assert answer.all("Retry-After") == [value for _, value in headers]
    assert len(engines["full"].requests) == 1
