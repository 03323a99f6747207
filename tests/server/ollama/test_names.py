"""Names: what the list offers works on every route of both APIs, and comes back as it was asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.fakes.raw_client import RawAnswer
from tests.fakes.raw_engine import RawEngine
from tests.server.calls import CHAT as V1_CHAT
from tests.server.calls import SHOW, get, ollama_error, openai_error, post
from tests.server.gateway_process import GatewayProcess
from tests.server.ollama.asking import (
    CHAT, EMBED, EMBEDDINGS, GENERATE, HI, PULL, TAGS, chat, embed, generate,
)
from tests.server.ollama.ndjson import lines, whole
from tests.server.ollama.served_models import EMBEDDER, GONE, NICK, OTHER, PULLED

Ask = Callable[[str, str], RawAnswer]


def _posting(path: str, **fields: Any) -> Ask:
    return lambda url, name: post(url, path, {"model": name, **fields})


# Every route that takes a model's name, with a request that a model of any kind can answer.
OLLAMA_ROUTES: dict[str, Ask] = {
    "chat": _posting(CHAT, messages=HI),
    "chat_whole": _posting(CHAT, messages=HI, stream=False),
    "chat_load": _posting(CHAT),
    "chat_unload": _posting(CHAT, keep_alive=0),
    "generate": _posting(GENERATE, prompt="hi"),
    "generate_raw": _posting(GENERATE, prompt="hi", raw=True),
    "generate_load": _posting(GENERATE),
    "generate_unload": _posting(GENERATE, keep_alive=0),
    "embed": _posting(EMBED, input="hi"),
    "embed_load": _posting(EMBED),
    "embeddings": _posting(EMBEDDINGS, prompt="hi"),
    "show": _posting(SHOW),
    "show_by_the_old_word": lambda url, name: post(url, SHOW, {"name": name}),
}
PULLS: dict[str, Ask] = {
    "pull": _posting(PULL), "pull_whole": _posting(PULL, stream=False),
    "pull_by_the_old_word": lambda url, name: post(url, PULL, {"name": name}),
}
OPENAI_ROUTES: dict[str, Ask] = {
    "v1_chat": _posting(V1_CHAT, messages=HI),
    "v1_embeddings": _posting("/v1/embeddings", input="hi"),
    "v1_model": lambda url, name: get(url, f"/v1/models/{quote(name, safe='')}"),
}
ROUTES = {**OLLAMA_ROUTES, **PULLS, **OPENAI_ROUTES}
SPEAKING = {"chat", "chat_whole", "generate", "generate_raw"}
ECHOING = {"chat": lines, "chat_whole": lambda answer: [whole(answer)],
           "chat_load": lambda answer: [whole(answer)], "generate": lines,
           "generate_load": lambda answer: [whole(answer)],
           "embed": lambda answer: [answer.json()], "embed_load": lambda answer: [answer.json()]}


@pytest.fixture(autouse=True)
def engines(engine: RawEngine, other: RawEngine) -> None:
    """Both engines answer everything."""


def offered(url: str) -> list[str]:
    """Every name in the list that a running engine stands behind."""
    models = get(url, TAGS).json()["models"]
    assert all(model["name"] == model["model"] for model in models)
    return [model["name"] for model in models if not model["name"].startswith(GONE)]


def test_the_list_has_every_model_with_a_tag(gateway: GatewayProcess) -> None:
    """`latest` where the registry has none; hosts and owners stay."""
    tagged = {name if ":" in name else f"{name}:latest" for name in PULLED}
    assert {*offered(gateway.url), f"{GONE}:latest"} == tagged


@pytest.mark.parametrize("route", ROUTES)
def test_every_listed_name_works(gateway: GatewayProcess, route: str) -> None:
    """Whatever kind of model it is, but for words of one that only embeds."""
    for name in offered(gateway.url):
        for spelling in (name, name.removesuffix(":latest"), name.upper()):
            answer = ROUTES[route](gateway.url, spelling)
            if name.startswith(EMBEDDER) and route in SPEAKING:
                assert "does not support" in ollama_error(answer)
            else:
                assert answer.status == 200, (spelling, answer.body)
                assert b'"error"' not in answer.body, (spelling, answer.body)


SPELLINGS = [("foo", "foo"), ("foo:latest", "foo"), ("FOO", "foo"), ("Foo:LATEST", "foo"),
             ("BAR:1B", "bar:1b"), ("org/x:latest", "org/x"), ("ORG/X", "org/x"),
             ("HF.co/A/b:q4_k_m", "hf.co/a/b:Q4_K_M"), (NICK, "org/x"), ("Nick:latest", "org/x"),
             ("OTHER", OTHER)]


@pytest.mark.parametrize(("name", "meant"), SPELLINGS)
@pytest.mark.parametrize("route", ECHOING)
def test_the_answer_has_the_name_as_asked(
        gateway: GatewayProcess, engine: RawEngine, other: RawEngine, route: str, name: str,
        meant: str) -> None:
    """No tag is added, no case changed; the engine knows it by the registry's name."""
    answer = OLLAMA_ROUTES[route](gateway.url, name)
    assert {line["model"] for line in ECHOING[route](answer)} == {name}
    for request in [*engine.requests, *other.requests]:
        assert b'"model":"%b"' % meant.encode() in request.body


UNKNOWN = ["nope", "foo:1b", "bar", "bar:latest", "bar:1", "hf.co/a/b", "a/b:Q4_K_M", "x", "fo",
           "foo:", "*", "f*", "latest", "org/", "nope:cloud", "../foo", "foo\n", "ünbekannt", "a b",
           'say "hi"', "x" * 300]


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("route", OLLAMA_ROUTES)
def test_no_other_name_is_guessed(
        gateway: GatewayProcess, engine: RawEngine, route: str, name: str) -> None:
    """A near miss is a 404 with the name as it was asked for, in single quotes."""
    answer = OLLAMA_ROUTES[route](gateway.url, name)
    assert (answer.status, ollama_error(answer)) == (404, f"model '{name}' not found")
    assert engine.requests == []


@pytest.mark.parametrize("name", ["nope", "foo:1b", "bar"])
@pytest.mark.parametrize("route", OPENAI_ROUTES)
def test_the_other_api_says_it_in_its_own_way(
        gateway: GatewayProcess, route: str, name: str) -> None:
    """The same names, the same status."""
    answer = OPENAI_ROUTES[route](gateway.url, name)
    assert answer.status == 404
    assert openai_error(answer)["message"] == f"the model '{name}' does not exist"


@pytest.mark.parametrize("route", [CHAT, GENERATE, EMBED, EMBEDDINGS])
def test_the_old_word_is_no_name_where_work_is_done(gateway: GatewayProcess, route: str) -> None:
    """Only show and pull know it."""
    answer = post(gateway.url, route, {"name": "foo", "messages": HI, "prompt": "hi", "input": "a"})
    assert answer.status in (400, 404) and ollama_error(answer) in (
        "model is required", "model '' not found")


@pytest.mark.parametrize("name", ["", None, " ", "\t"])
@pytest.mark.parametrize("ask", [chat, embed], ids=["chat", "embed"])
def test_a_blank_name_is_none(
        gateway: GatewayProcess, engine: RawEngine, ask: Any, name: str | None) -> None:
    """Nothing is looked up by it."""
    answer = ask(gateway.url, model=name)
    assert (answer.status, ollama_error(answer)) == (400, "model is required")


@pytest.mark.parametrize("name", [5, True, ["foo"], {"name": "foo"}])
@pytest.mark.parametrize("ask", [chat, generate, embed], ids=["chat", "generate", "embed"])
def test_a_name_is_a_text(
        gateway: GatewayProcess, engine: RawEngine, ask: Any, name: Any) -> None:
    """Anything else is refused."""
    answer = ask(gateway.url, model=name)
    assert (answer.status, bool(ollama_error(answer))) == (400, True)
    assert engine.requests == []
