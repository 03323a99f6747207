"""What a request without a model means: nothing, a name, or the model that was used last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.fakes.engine_steps import COMPLETION, reply
from tests.fakes.raw_client import RawAnswer, fetch
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome
from tests.fakes.stream_steps import DONE, STOP, stream
from tests.server.calls import JSON, openai_error, post
from tests.server.conftest import StartGateway
from tests.server.gateway_process import GatewayProcess
from tests.server.stream.test_uploads import BOUNDARY, file, form, part

MESSAGES = [{"role": "user", "content": "hi"}]
FIELDS = {"messages": MESSAGES, "prompt": "hi", "input": "hi", "content": "hi", "max_tokens": 5}
PATHS = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses",
         "/v1/messages", "/v1/anything", "/chat/completions", "/completion", "/tokenize",
         "/apply-template", "/infill", "/embedding", "/rerank"]
NO_MODEL = [{}, {"model": None}]
MULTIPART = [("Content-Type", f"multipart/form-data; boundary={BOUNDARY}")]


class Two:
    """A gateway with an engine each for the models `a` and `b`."""

    def __init__(self, gateway: GatewayProcess, engines: dict[str, RawEngine]) -> None:
        self.gateway = gateway
        self.engines = engines

    def fresh(self) -> Two:
        """Itself, its engines without memory."""
        for engine in self.engines.values():
            engine.answer_with(reply())
        return self

    def ask(self, path: str, **fields: object) -> RawAnswer:
        """POST a body that suits every endpoint."""
        return post(self.gateway.url, path, {**FIELDS, **fields})

    def asked(self) -> list[str]:
        """Which engines have got a request."""
        return [name for name, engine in self.engines.items() if engine.requests]


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, RawEngine]]:
    """The engines of the models `a` and `b`."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(RawEngine(reply())) for name in "ab"}


def start(start_gateway: StartGateway, engines: dict[str, RawEngine], home: RegistryHome,
          default: str | None) -> Two:
    """A gateway with this `default-model`."""
    loop = {"home": str(home.path), "aliases": {"short": "b"}, "default-model": default,
            "engines": [{"url": engine.url, "models": [name]} for name, engine in engines.items()]}
    return Two(start_gateway({"loop": loop}), engines)


@pytest.fixture(scope="module")
def named(start_gateway: StartGateway, engines: dict[str, RawEngine],
          stream_home: RegistryHome) -> Two:
    """The default model is an alias of `b`."""
    return start(start_gateway, engines, stream_home, "short")


@pytest.fixture(scope="module")
def none(start_gateway: StartGateway, engines: dict[str, RawEngine],
         stream_home: RegistryHome) -> Two:
    """There is no default model."""
    return start(start_gateway, engines, stream_home, None)


@pytest.fixture(scope="module")
def unused(start_gateway: StartGateway, engines: dict[str, RawEngine],
           stream_home: RegistryHome) -> Two:
    """The default model is the one used last, and none ever is."""
    return start(start_gateway, engines, stream_home, "loaded")


@pytest.fixture
def loaded(start_gateway: StartGateway, engines: dict[str, RawEngine],
           stream_home: RegistryHome) -> Two:
    """The default model is the one used last, and none has been."""
    return start(start_gateway, engines, stream_home, "loaded").fresh()


@pytest.mark.parametrize("model", NO_MODEL, ids=["absent", "null"])
@pytest.mark.parametrize("path", PATHS)
def test_without_a_default_it_is_a_400(none: Two, path: str, model: dict[str, object]) -> None:
    """No engine is guessed."""
    answer = none.fresh().ask(path, **model)
    assert answer.status == 400
    if path != "/v1/messages":
        error = openai_error(answer)
        assert (error["type"], error["param"]) == ("invalid_request_error", "model")
    assert none.asked() == []


@pytest.mark.parametrize("value", [5, True, [], {}, "", " "])
@pytest.mark.parametrize("path", PATHS)
def test_a_model_that_is_no_name_is_a_400(none: Two, path: str, value: object) -> None:
    """Neither another type nor a blank is a model."""
    answer = none.fresh().ask(path, model=value)
    assert answer.status == 400
    if path != "/v1/messages":
        assert openai_error(answer)["param"] == "model"
    assert none.asked() == []


@pytest.mark.parametrize("model", NO_MODEL, ids=["absent", "null"])
@pytest.mark.parametrize("path", PATHS)
def test_a_default_by_name_is_used(named: Two, path: str, model: dict[str, object]) -> None:
    """On every endpoint; aliases work in the configuration too."""
    answer = named.fresh().ask(path, **model)
    assert (answer.status, answer.body) == (200, COMPLETION)
    assert named.asked() == ["b"]
    sent = json.loads(named.engines["b"].requests[0].body)
    assert sent.pop("model", "b") in ("b", None)
    assert sent == FIELDS


@pytest.mark.parametrize("model", [*NO_MODEL, {"model": ""}], ids=["absent", "null", "blank"])
@pytest.mark.parametrize(("path", "status", "text"), [
    ("/api/chat", 400, "model is required"), ("/api/generate", 404, "model '' not found"),
    ("/api/embed", 400, "model is required"), ("/api/embeddings", 400, "model is required")])
def test_a_request_of_ollamas_names_its_model(
        named: Two, path: str, status: int, text: str, model: dict[str, object]) -> None:
    """There the default is none: the errors are Ollama's."""
    answer = named.fresh().ask(path, **model)
    assert (answer.status, answer.json()) == (status, {"error": text})
    assert named.asked() == []


@pytest.mark.parametrize("path", PATHS)
def test_a_model_that_is_named_wins(named: Two, path: str) -> None:
    """The default is for requests without one."""
    assert named.fresh().ask(path, model="a").status == 200
    assert named.asked() == ["a"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/completion"])
def test_an_unknown_model_is_not_replaced(named: Two, path: str) -> None:
    """It stays a 404."""
    assert named.fresh().ask(path, model="nope").status == 404
    assert named.asked() == []


def test_a_form_without_a_model_goes_to_the_default(named: Two) -> None:
    """Its bytes are the client's own: the engine of a default needs no name."""
    body = form(file(), part("language", b"de"))
    answer = post(named.fresh().gateway.url, "/v1/audio/transcriptions", body, MULTIPART)
    assert (answer.status, named.asked()) == (200, ["b"])
    assert named.engines["b"].requests[0].body == body


@pytest.mark.parametrize("path", ["/props", "/slots", "/lora-adapters"])
def test_questions_to_an_engine_have_a_default_too(named: Two, path: str) -> None:
    """A GET names its model in the query, or means the default one."""
    for query, engine in (("", "b"), ("?model=a", "a"), ("?model=short&x=1", "b")):
        named.fresh()
        assert fetch(named.gateway.url, "GET", path + query).status == 404
        asked = {name: [probe.path for probe in engine.probes]
                 for name, engine in named.engines.items() if engine.probes}
        assert list(asked) == [engine] and asked[engine][0].startswith(path)


@pytest.mark.parametrize("path", PATHS)
def test_none_loaded_is_a_503(unused: Two, path: str) -> None:
    """Where the default is the model used last, and none has been used."""
    answer = unused.fresh().ask(path)
    assert answer.status == 503
    assert int(answer.header("Retry-After") or "") >= 0
    if path != "/v1/messages":
        error = openai_error(answer)
        assert error["message"] == "no model is currently loaded"
        assert (error["type"], error["code"]) == ("server_error", "service_unavailable")
    assert unused.asked() == []


def test_loaded_is_the_model_used_last(loaded: Two) -> None:
    """By whatever name and on whatever endpoint it was used."""
    for name, path, expected in (("b", "/v1/completions", "b"), ("a", "/tokenize", "a"),
                                 ("short", "/v1/embeddings", "b"), ("a", "/v1/messages", "a")):
        assert loaded.ask(path, model=name).status == 200
        loaded.fresh()
        assert loaded.ask("/v1/chat/completions").status == 200
        assert loaded.asked() == [expected]


def test_a_stream_loads_its_model(loaded: Two) -> None:
    """A stream is a use like any other."""
    loaded.engines["a"].answer_with(stream("chunked", [STOP, DONE]))
    assert loaded.ask("/v1/chat/completions", model="a", stream=True).body == STOP + DONE
    loaded.fresh()
    assert loaded.ask("/completion").status == 200
    assert loaded.asked() == ["a"]


@pytest.mark.parametrize("fields", [{"model": "nope"}, {"model": 5}, {"model": "a", "stream": 1}])
def test_a_call_that_was_refused_loads_nothing(unused: Two, fields: dict[str, object]) -> None:
    """Only a model that an engine has served is loaded."""
    assert unused.fresh().ask("/v1/completions", **fields).status in (400, 404)
    assert post(unused.gateway.url, "/v1/completions", FIELDS, JSON).status == 503
