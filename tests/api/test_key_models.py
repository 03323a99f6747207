"""A key for some models: the others cannot be used and are in no list, whatever they are called."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from app.call import Reply
from app.gateway import Gateway
from app.settings import EngineSettings, KeySettings
from tests.api.conftest import Build, SetClock
from tests.api.holders import bearer, holder
from tests.fakes.engine_steps import reply
from tests.fakes.metrics_page import MetricsPage
from tests.fakes.raw_engine import RawEngine
from tests.fakes.registry_home import RegistryHome

CHAT = "/v1/chat/completions"
USER = [{"role": "user", "content": "hi"}]
MODELS = ["org/Small:Q4", "org/Large:Q4", "Secret", "bare"]
ALIASES = {"pet": "org/Small:Q4", "hidden": "Secret", "Org/Small:Q8": "org/Large:Q4"}
ALICE = bearer("alice")
MINE = "org/Small:Q4"


@pytest.fixture
def engine() -> Iterator[RawEngine]:
    """The engine of every model."""
    with RawEngine(reply()) as engine:
        yield engine


@pytest.fixture
def start(build: Build, engine: RawEngine, registry_home: RegistryHome) -> Any:
    """A function that builds a gateway of four models and more, with these keys."""
    for name in MODELS:
        registry_home.add(name)

    def started(*keys: KeySettings, **loop: Any) -> FlaskClient:
        engines = (EngineSettings(engine.url, ("*", "Listed/Only:1")),)
        return build(keys=keys, **{"engines": engines, "aliases": ALIASES, **loop})
    return started


def chat(client: FlaskClient, model: str | None, headers: dict[str, str] = ALICE,
         path: str = CHAT) -> tuple[int, dict[str, Any]]:
    """Status and body of a call of this model."""
    body = {"messages": USER, "input": "x", "prompt": "x", "stream": False, "max_tokens": 1}
    answer = client.post(path, headers=headers, buffered=True, data=json.dumps(
        body if model is None else {"model": model, **body}))
    return answer.status_code, json.loads(answer.data)


ALLOWED = [MINE, "org/small:q4", "ORG/SMALL:Q4", "pet", "PET", "pet:latest"]
OTHERS = ["org/Large:Q4", "ORG/LARGE:q4", "Secret", "secret", "SECRET:latest", "hidden", "HIDDEN",
          "Org/Small:Q8", "org/small", "org/Small:Q4:x", "bare", "nope", "Listed/Only:1",
          "listed/only:1", "org/Small:Q*", "*", " org/Small:Q4", "org/Small:Q4 "]
PATHS = [CHAT, "/v1/completions", "/v1/embeddings", "/v1/messages", "/v1/responses",
         "/completion", "/infill", "/api/chat", "/api/generate", "/api/embed", "/api/embeddings"]


@pytest.mark.parametrize("path", PATHS)
def test_a_model_of_the_key_is_used(start: Any, engine: RawEngine, path: str) -> None:
    """By any name that leads to it."""
    client = start(holder("alice", models=(MINE,)))
    for model in ALLOWED:
        assert chat(client, model, path=path)[0] in (200, 502)  # 502: no embeddings in the answer
    assert {json.loads(request.body)["model"] for request in engine.requests} == {MINE}


@pytest.mark.parametrize("path", PATHS)
def test_any_other_model_is_a_403(start: Any, engine: RawEngine, path: str) -> None:
    """Whether or not there is one of that name: no alias, case or tag leads to it."""
    client = start(holder("alice", models=(MINE,)))
    for model in OTHERS:
        status, body = chat(client, model, path=path)
        error = body["error"]
        assert status == 403, model
        if path == "/v1/messages":
            assert error["type"] == "permission_error"
        elif path.startswith("/api"):
            assert error == f"the key 'alice' may not use the model '{model}'"
        else:
            assert (error["type"], error["code"], error["param"]) == (
                "permission_error", "model_not_allowed", "model")
    assert engine.requests == [] and engine.probes == []


@pytest.mark.parametrize(("method", "path"), [
    ("POST", "/upstream/Secret/v1/chat/completions"), ("GET", "/upstream/secret:latest/metrics"),
    ("GET", "/upstream/hidden/props"), ("POST", "/upstream/org%2FLarge:Q4/x"),
    ("GET", "/props?model=Secret"), ("GET", "/slots?model=hidden"), ("GET", "/metrics?model=bare"),
    ("POST", "/slots/0?model=SECRET"), ("GET", "/lora-adapters?model=Secret")])
def test_no_address_leads_to_another_model(
        start: Any, engine: RawEngine, method: str, path: str) -> None:
    """An admin of some models is none of the others."""
    client = start(holder("alice", models=(MINE,), scopes=("infer", "admin", "metrics")))
    assert client.open(path, method=method, headers=ALICE, data=b"{}").status_code == 403
    assert engine.requests == [] and engine.probes == []


FORM = ("--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{}\r\n--b--\r\n")


@pytest.mark.parametrize(("model", "status"), [("pet", 200), ("hidden", 403), ("Secret", 403)])
def test_a_form_is_no_way_round(start: Any, model: str, status: int) -> None:
    """The model in it is compared alike."""
    answer = start(holder("alice", models=(MINE,))).post(
        "/v1/audio/transcriptions", headers=ALICE, data=FORM.format(model).encode(),
        content_type="multipart/form-data; boundary=b")
    assert answer.status_code == status


@pytest.mark.parametrize("globs", [
    ("org/*",), ("ORG/s*", "org/large:q4"), ("org/Small", "org/*:Q4"), ("[o]rg/*:Q4",)])
def test_globs_are_those_of_engines(start: Any, globs: tuple[str, ...]) -> None:
    """In any case, with the tag or without it."""
    client = start(holder("alice", models=globs))
    found = {model for model in MODELS if chat(client, model)[0] == 200}
    assert found == {"org/Small:Q4", "org/Large:Q4"}


def lists(client: FlaskClient, headers: dict[str, str]) -> list[set[str]]:
    """What each list and each question about one model knows."""
    def names(path: str, key: str, name: str) -> set[str]:
        answer = client.get(path, headers=headers)
        assert answer.status_code == 200
        return {each[name].removesuffix(":latest") for each in json.loads(answer.data)[key]}

    def known(model: str) -> bool:
        statuses = {client.get(f"/v1/models/{model}", headers=headers).status_code,
                    client.post("/api/show", json={"model": model}, headers=headers).status_code}
        assert statuses in ({200}, {404})
        return statuses == {200}

    return [names("/v1/models", "data", "id"), names("/models", "data", "id"),
            names("/api/tags", "models", "model"), names("/api/ps", "models", "model"),
            {model for model in MODELS if known(model)}]


def test_lists_show_what_can_be_used(start: Any) -> None:
    """Each key its own models, in every list; the others are a 404, as if they were not there."""
    client = start(holder("alice", models=("org/*",)), holder("bob", models=("bare",)),
                   holder("root"), holder("none", models=()))
    for model in MODELS:
        assert chat(client, model, bearer("root"))[0] == 200  # so that it counts as loaded
    assert lists(client, ALICE) == [{"org/Small:Q4", "org/Large:Q4"}] * 5
    assert lists(client, bearer("bob")) == [{"bare"}] * 5
    assert lists(client, bearer("root")) == [set(MODELS)] * 5
    assert lists(client, bearer("none")) == [set()] * 5


def test_metrics_tell_of_models_that_can_be_used(start: Any, engine: RawEngine) -> None:
    """And of none at all; the others are in no label."""
    team = {"scopes": ("infer", "metrics")}
    client = start(holder("alice", models=(MINE,), **team), holder("none", models=(), **team),
                   holder("root", **team), engines=tuple(
                       EngineSettings(engine.url, (model,)) for model in MODELS))
    for model in [*MODELS, "nope"]:
        assert chat(client, model, bearer("root"))[0] == (404 if model == "nope" else 200)

    def models(name: str) -> set[str]:
        page = MetricsPage(client.get("/metrics", headers=bearer(name)).get_data(as_text=True))
        assert page.by("loop_calls_total", "model")["",] and page.types["loop_engine_state"]
        assert page.value("loop_build_info") == 1
        return {sample.labels.get("model", "") for sample in page.samples}

    assert client.get("/v1/models", headers=ALICE, buffered=True).status_code == 200
    assert models("root") == {"", "other", *MODELS}
    assert models("alice") == {"", "other", MINE}
    assert models("none") == {"", "other"}


@pytest.mark.parametrize("name", ["hidden", "pet"])
@pytest.mark.parametrize(("path", "body"), [
    ("/api/pull", {"model": "{}"}), ("/api/pull", {"model": "hub://{}"}),
    ("/api/create", {"model": "new", "from": "{}"}), ("/api/create", {"model": "{}", "from": "x"}),
    ("/api/copy", {"source": "{}", "destination": "y"}),
    ("/api/copy", {"source": "bare", "destination": "{}"}), ("/api/delete", {"model": "{}"}),
    ("/api/generate", {"model": "{}", "keep_alive": 0}), (CHAT, {"model": "{}", "messages": USER})])
def test_no_error_tells_what_an_alias_stands_for(
        start: Any, path: str, body: dict[str, Any], name: str) -> None:
    """It says what the client said."""
    client = start(holder("alice", models=("bare", "new", "x"), scopes=("infer", "admin")))
    answer = client.open(path, method="DELETE" if path == "/api/delete" else "POST", headers=ALICE,
                         json={key: value.format(name) if isinstance(value, str) else value
                               for key, value in body.items()})
    assert answer.status_code == 403
    said = answer.get_data(as_text=True)
    assert name in said and "secret" not in said.lower() and "small" not in said.lower()


def test_two_models_in_a_query_are_refused(start: Any, engine: RawEngine) -> None:
    """An engine might read the one that was not compared; however the name is written."""
    client = start(holder("alice", models=(MINE,), scopes=("infer", "admin", "metrics")))
    for query in (f"model={MINE}&model=Secret", f"model={MINE}&a=b&model=",
                  f"model=pet&model={MINE}", f"model={MINE}&%6dodel=Secret"):
        for method, path in [("GET", "/props"), ("POST", "/slots/0"), ("GET", "/metrics")]:
            answer = client.open(f"{path}?{query}", method=method, headers=ALICE)
            assert answer.status_code == 400 and b"'model' stands in the query" in answer.data
    assert engine.requests == [] and engine.probes == []


@pytest.mark.parametrize("name", ["hidden", "HIDDEN", "secret", "Org/Small:Q8"])
def test_no_name_shows_another_model(start: Any, name: str) -> None:
    """Neither an alias nor another case."""
    client = start(holder("alice", models=(MINE,)))
    assert client.get(f"/v1/models/{name}", headers=ALICE).status_code == 404
    assert client.post("/api/show", json={"model": name}, headers=ALICE).status_code == 404
    assert client.get("/v1/models/pet", headers=ALICE).status_code == 200


@pytest.mark.parametrize(("default", "status"), [("pet", 200), ("Secret", 403), ("hidden", 403)])
def test_the_default_model_is_compared_too(
        start: Any, engine: RawEngine, default: str, status: int) -> None:
    """What no name is given for is no exception, and its name is not told."""
    client = start(holder("alice", models=(MINE,)), default_model=default)
    found, body = chat(client, None)
    assert found == status and "secret" not in str(body).lower()
    assert client.get("/props", headers=ALICE).status_code in ({200: 404, 403: 403}[status],)


def test_the_model_used_last_may_be_anothers(
        start: Any, engine: RawEngine, clock: SetClock) -> None:
    """Then it is a 403; what was compared is what is used, whoever comes between."""
    client = start(holder("alice", models=(MINE,)), holder("root"), default_model="loaded")
    assert chat(client, MINE)[0] == 200
    assert chat(client, None)[0] == 200
    clock.move(seconds=1)
    assert chat(client, "Secret", bearer("root"))[0] == 200
    status, body = chat(client, None)
    assert (status, body["error"]["message"]) == (
        403, "the key 'alice' may not use the default model")
    assert [json.loads(request.body)["model"] for request in engine.requests] == [
        MINE, MINE, "Secret"]


@pytest.mark.parametrize(("cap", "asked", "given"), [
    ("HIGH", None, "NORMAL"), ("HIGH", "HIGH", "HIGH"), ("HIGH", "LOW", "LOW"),
    ("NORMAL", "HIGH", "NORMAL"), ("NORMAL", "LOW", "LOW"), ("LOW", None, "LOW"),
    ("LOW", "HIGH", "LOW")])
def test_a_call_carries_its_caller_and_a_priority_it_may_have(
        start: Any, monkeypatch: pytest.MonkeyPatch, cap: str, asked: str | None,
        given: str) -> None:
    """Whoever shares an engine fairly needs both; a key has the last word on how urgent it is."""
    seen: list[tuple[str, str]] = []
    real = Gateway.call

    def noting(gateway: Gateway, call: Any) -> Any:
        seen.append((call.caller, call.priority.name))
        return real(gateway, call)

    monkeypatch.setattr(Gateway, "call", noting)
    client = start(holder("alice", max_priority=cap))
    for path in (CHAT, "/v1/completions", "/completion"):
        body = {"model": MINE, "messages": USER, "prompt": "x", "x_juno_priority": asked}
        assert client.post(path, json=body, headers=ALICE, buffered=True).status_code == 200
    assert seen == [("alice", given)] * 3


def test_without_keys_a_call_is_as_urgent_as_it_says(
        start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that nobody knows gives its caller no name."""
    seen: list[tuple[str, str]] = []
    monkeypatch.setattr(Gateway, "call", lambda _, call: seen.append((
        call.caller, call.priority.name)) or Reply.whole(200, [], b"{}"))
    body = {"model": MINE, "messages": USER, "x_juno_priority": "HIGH"}
    assert start().post(CHAT, json=body, headers=ALICE).status_code == 200
    assert [(who != "alice", priority) for who, priority in seen] == [(True, "HIGH")]
