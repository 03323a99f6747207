"""Loading and unloading, and for how long a model counts as loaded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tests.fakes.engine_steps import chunks, hold, reply, send, silence
from tests.fakes.processes import wait_until
from tests.fakes.raw_client import RawAnswer, RawClient
from tests.fakes.raw_engine import Exchange, RawEngine
from tests.fakes.stream_steps import DONE, STOP, ev, head_for
from tests.server.calls import CHAT as V1_CHAT
from tests.server.calls import HELLO, JSON, get, ollama_error, post, to_bytes
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import (
    CHAT, EMBED, EMBEDDINGS, GENERATE, PS, WORK, chat, embed, generate,
)
from tests.server.ollama.engine_answers import failing
from tests.server.ollama.ndjson import arriving, content, success, whole
from tests.server.ollama.served_models import EMBEDDER, GONE, OTHER, SLOT, TALKER, probed
from tests.unit.ollama.client_shapes import open_webui_running

_TICK = timedelta(milliseconds=1)  # what is lost in rounding
FOREVER = timedelta(days=365 * 50)
EMPTY = {CHAT: {"message": {"role": "assistant", "content": ""}}, GENERATE: {"response": ""}}


def running(url: str) -> dict[str, datetime]:
    """The models that count as loaded, and until when."""
    models = get(url, PS).json()["models"]
    return {model["name"]: open_webui_running(model) for model in models}


@pytest.fixture(autouse=True)
def nothing_loaded(gateway: GatewayProcess, engine: RawEngine) -> Iterator[None]:
    """Each test begins with no model loaded."""
    for name in running(gateway.url):
        assert post(gateway.url, GENERATE, {"model": name, "keep_alive": 0}).status == 200
    assert running(gateway.url) == {}
    yield


def stays(url: str, time: timedelta, ask: Callable[[], object]) -> None:
    """The model counts as loaded for so long from the end of the call; raises AssertionError."""
    before = datetime.now(timezone.utc)
    ask()
    ended = datetime.now(timezone.utc)
    # The time of a stream begins a moment after its client has seen the end.
    later = timedelta(seconds=5)
    wait_until(lambda: before + time <= running(url)[TALKER] + _TICK <= ended + time + later,
               f"a time of {time}", 5)


EMPTIES: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {}), (CHAT, {"messages": None}), (CHAT, {"messages": []}), (GENERATE, {}),
    (GENERATE, {"prompt": None}), (GENERATE, {"prompt": ""}),
]


@pytest.mark.parametrize("stream", [{}, {"stream": True}, {"stream": False}], ids=repr)
@pytest.mark.parametrize("model", [TALKER, OTHER])
@pytest.mark.parametrize(("route", "empty"), EMPTIES, ids=repr)
def test_nothing_to_say_loads_and_unloads(
        gateway: GatewayProcess, engine: RawEngine, other: RawEngine, route: str,
        empty: dict[str, Any], model: str, stream: dict[str, Any]) -> None:
    """One object either way, never a stream, no metrics; the engine has nothing to generate."""
    for keep, reason in ({}, "load"), ({"keep_alive": 0}, "unload"), ({"keep_alive": 0}, "unload"):
        found = whole(post(gateway.url, route, {"model": model, **empty, **stream, **keep}))
        assert found.pop("created_at")
        assert found == {"model": model, **EMPTY[route], "done": True, "done_reason": reason}
        name = model if ":" in model else f"{model}:latest"
        assert (name in running(gateway.url)) == (reason == "load")
    assert engine.requests == other.requests == []


KEPT: list[tuple[Any, timedelta]] = [
    (300, timedelta(minutes=5)), (1800, timedelta(minutes=30)), ("5m", timedelta(minutes=5)),
    ("1h30m", timedelta(minutes=90)), ("3600s", timedelta(hours=1)),
    (90.5, timedelta(seconds=90.5)), ("1.5h", timedelta(minutes=90)),
    ("90000ms", timedelta(seconds=90)), ("300", timedelta(minutes=5)),
    ("+5m", timedelta(minutes=5)), (None, timedelta(minutes=5)),
]


@pytest.mark.parametrize("ask", [
    lambda url, keep: whole(post(url, CHAT, {"model": TALKER, "keep_alive": keep})),
    lambda url, keep: whole(post(url, GENERATE, {"model": TALKER, "keep_alive": keep})),
    lambda url, keep: success(chat(url, keep_alive=keep)),
    lambda url, keep: whole(generate(url, keep_alive=keep, stream=False)),
    lambda url, keep: embed(url, model=TALKER, keep_alive=keep).json()["embeddings"],
    lambda url, keep: post(url, EMBEDDINGS, {"model": TALKER, "prompt": "hi", "keep_alive": keep}),
    lambda url, keep: embed(url, model=TALKER, keep_alive=keep, input=[]).json()["embeddings"],
], ids=["chat_load", "generate_load", "chat", "generate", "embed", "embeddings", "embed_load"])
@pytest.mark.parametrize(("keep", "time"), KEPT, ids=repr)
def test_how_long_it_stays(
        gateway: GatewayProcess, ask: Any, keep: Any, time: timedelta) -> None:
    """Counted from the end of the request: seconds, or one of Go's durations."""
    stays(gateway.url, time, lambda: ask(gateway.url, keep))


@pytest.mark.parametrize("keep", [-1, "-1m", "-1", -0.5, "-1s", 1e300, "9000000h"], ids=repr)
def test_for_ever(gateway: GatewayProcess, keep: Any) -> None:
    """Is a date far ahead that clients can still read."""
    assert whole(post(gateway.url, CHAT, {"model": TALKER, "keep_alive": keep}))
    until = running(gateway.url)[TALKER]
    assert until.year <= 9999 and until - datetime.now(timezone.utc) > FOREVER


@pytest.mark.parametrize("keep", [0, "0", "0s", 0.0, "0m", "-0"], ids=repr)
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_and_then_gone(
        gateway: GatewayProcess, engine: RawEngine, keep: Any, stream: bool) -> None:
    """A time of none counts after the answer too."""
    answer = chat(gateway.url, keep_alive=keep, stream=stream)
    assert (content(success(answer)[0]) if stream else whole(answer)["message"]["content"])
    wait_until(lambda: running(gateway.url) == {}, "the end of the model", 5)


def test_the_last_word_counts(gateway: GatewayProcess, engine: RawEngine) -> None:
    """A request of this API without one brings the usual time back; others change nothing."""
    assert success(chat(gateway.url, keep_alive=-1))
    wait_until(lambda: running(gateway.url)[TALKER].year > 2100, "the time of the first", 5)
    assert post(gateway.url, V1_CHAT, {**HELLO, "model": TALKER}).status == 200
    assert running(gateway.url)[TALKER].year > 2100
    stays(gateway.url, timedelta(minutes=5), lambda: success(chat(gateway.url)))
    assert list(running(gateway.url)) == [TALKER]


def test_clients_that_put_it_among_the_options(gateway: GatewayProcess) -> None:
    """Are understood."""
    body = {"model": TALKER, "options": {"keep_alive": "30m"}}
    stays(gateway.url, timedelta(minutes=30), lambda: whole(post(gateway.url, CHAT, body)))


def test_it_is_loaded_while_it_speaks(gateway: GatewayProcess, engine: RawEngine) -> None:
    """Also where it is to go afterwards."""
    go_on = threading.Event()
    engine.answer_with([send(head_for("chunked")), chunks(ev("a")), hold(go_on),
                        chunks(STOP + DONE, b"")])
    body = to_bytes({**WORK[CHAT], "keep_alive": 0})
    with RawClient(gateway.url) as client:
        found = arriving(client.request("POST", CHAT, JSON, body))
        next(found)
        assert list(running(gateway.url)) == [TALKER]
        go_on.set()
        assert next(found)["done"] and not list(found)
    wait_until(lambda: running(gateway.url) == {}, "the end of the model", 5)


def test_the_one_that_stays_longest_comes_first(gateway: GatewayProcess) -> None:
    """With all that clients read of a running model."""
    keeps = {"foo": "1h", TALKER: "10m", "bar:1b": -1, EMBEDDER: "2h"}
    for name, keep in keeps.items():
        assert whole(post(gateway.url, CHAT, {"model": name, "keep_alive": keep}))
    models = get(gateway.url, PS).json()["models"]
    assert [model["name"] for model in models] == [
        "bar:1b", f"{EMBEDDER}:latest", "foo:latest", TALKER]
    for model in models:
        assert list(model) == ["name", "model", "size", "digest", "details", "expires_at",
                               "size_vram", "context_length"]
        assert model["context_length"] == SLOT and model["size"] > 0


UNKEEPABLE: list[tuple[Any, str]] = [
    (True, "Unsupported type: 'bool'"), (False, "Unsupported type: 'bool'"),
    ([], "Unsupported type: '[]interface {}'"),
    ({}, "Unsupported type: 'map[string]interface {}'"),
    ("abc", 'time: invalid duration "abc"'), ("", 'time: invalid duration ""'),
    ("5x", 'time: unknown unit "x" in duration "5x"'),
    ("1h5", 'time: missing unit in duration "1h5"'),
    ("5 m", 'time: unknown unit " m" in duration "5 m"'),
]


@pytest.mark.parametrize(("keep", "text"), UNKEEPABLE, ids=repr)
@pytest.mark.parametrize("route", WORK)
def test_a_time_that_is_none_is_refused(
        gateway: GatewayProcess, engine: RawEngine, route: str, keep: Any, text: str) -> None:
    """In Go's words, before an engine has worked for it."""
    answer = post(gateway.url, route, {**WORK[route], "keep_alive": keep})
    assert (answer.status, ollama_error(answer)) == (400, text)
    assert engine.requests == [] and running(gateway.url) == {}


@pytest.mark.parametrize("keep", [True, "abc"])
@pytest.mark.parametrize("route", [CHAT, GENERATE, EMBED])
def test_nothing_is_loaded_for_a_time_that_is_none(
        gateway: GatewayProcess, route: str, keep: Any) -> None:
    """Without a prompt as with one."""
    answer = post(gateway.url, route, {"model": TALKER, "keep_alive": keep})
    assert (answer.status, bool(ollama_error(answer))) == (400, True)
    assert running(gateway.url) == {}


def failing_load(url: str, model: str) -> RawAnswer:
    """A load whose engine cannot be reached."""
    return post(url, CHAT, {"model": model})


def test_a_model_whose_engine_is_not_there(gateway: GatewayProcess) -> None:
    """Cannot be loaded, but unloaded."""
    answer = failing_load(gateway.url, GONE)
    assert (answer.status, bool(ollama_error(answer))) == (502, True)
    assert running(gateway.url) == {}
    assert whole(post(gateway.url, CHAT, {"model": GONE, "keep_alive": 0}))["done"]


def health(exchange: Exchange, *, status: int = 503) -> None:
    """GET /health of an engine that has not read its model yet."""
    failing(status, "Loading model", "unavailable_error")(exchange)


PROBES: dict[str, tuple[Any, int]] = {
    "loading": (health, 503), "silent": (silence, 504), "no_such_page": (reply(404, b"{}"), 200)}


@pytest.mark.parametrize(("probe", "status"), PROBES.values(), ids=PROBES)
def test_loading_waits_for_the_engine(
        gateway: GatewayProcess, engine: RawEngine, monkeypatch: pytest.MonkeyPatch, probe: Any,
        status: int) -> None:
    """One that is not ready is not said to be; one that has no such page is ready."""
    def probed_but_for_health(exchange: Exchange) -> None:
        (probe if exchange.request.path == "/health" else probed)(exchange)

    monkeypatch.setattr(engine, "probe_script", probed_but_for_health)
    assert failing_load(gateway.url, TALKER).status == status
    assert (running(gateway.url) == {}) == (status != 200)


@pytest.mark.parametrize("script", [failing(400, "no"), failing(500, "boom")])
def test_a_failed_answer_loads_nothing(
        gateway: GatewayProcess, engine: RawEngine, script: Any) -> None:
    """Only a success is a use."""
    engine.answer_with(script)
    assert chat(gateway.url).status >= 400 and generate(gateway.url).status >= 400
    assert running(gateway.url) == {}
