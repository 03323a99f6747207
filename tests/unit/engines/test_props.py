"""What an engine says of itself: its words, and for how long they count."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.engine_facts import OPENAI, EngineFacts
from app.engines.client import EngineClient
from app.engines.props import LIMITS, QUICK, PropsCache, asking, parse_props
from app.errors import GatewayError, Kind
from tests.fakes.engine_steps import refusing_url, reply, silence
from tests.fakes.raw_engine import RawEngine

PROPS: dict[str, Any] = {
    "default_generation_settings": {"n_ctx": 4096, "params": {"temperature": 0.8}},
    "total_slots": 4, "model_alias": "m", "model_path": "/models/m.gguf",
    "model_ftype": "Q4_K - Medium", "modalities": {"vision": True, "video": False, "audio": False},
    "media_marker": "<__media_x__>", "chat_template": "{{ messages }}",
    "chat_template_caps": {"supports_tools": True, "supports_system_role": True},
    "bos_token": "<s>", "build_info": "b11549", "is_sleeping": False,
}
FULL = EngineFacts(
    kind="llama-server", slot_context=4096, slots=4, chat_template="{{ messages }}",
    supports_tools=True, vision=True, audio=False, bos_token="<s>", media_marker="<__media_x__>",
    model_path="/models/m.gguf", ftype="Q4_K - Medium")
LLAMA = EngineFacts("llama-server")
LOADING = b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}'


def props(**changes: Any) -> bytes:
    """An answer to GET /props; ... leaves a field out."""
    fields = {**PROPS, **changes}
    return json.dumps({key: value for key, value in fields.items() if value is not ...}).encode()


def test_a_llama_server_says_everything() -> None:
    """Each field is taken from where it stands."""
    assert parse_props(200, props()) == FULL
    assert FULL.is_llama_server and FULL.described


@pytest.mark.parametrize(("changes", "field", "value"), [
    ({"chat_template_caps": ...}, "supports_tools", None),
    ({"chat_template_caps": {"supports_tools": False}}, "supports_tools", False),
    ({"chat_template_caps": {"supports_tools": "yes"}}, "supports_tools", None),
    ({"chat_template_caps": [1]}, "supports_tools", None),
    ({"modalities": ...}, "vision", False), ({"modalities": None}, "vision", False),
    ({"modalities": {"vision": 1}}, "vision", False),
    ({"modalities": {"audio": True}}, "audio", True),
    ({"chat_template": None}, "chat_template", ""), ({"chat_template": ...}, "chat_template", ""),
    ({"bos_token": None}, "bos_token", ""), ({"bos_token": ...}, "bos_token", ""),
    ({"model_path": 5}, "model_path", ""), ({"model_ftype": ...}, "ftype", ""),
    ({"default_generation_settings": {}}, "slot_context", 0),
    ({"default_generation_settings": {"n_ctx": 0}}, "slot_context", 0),
    ({"default_generation_settings": {"n_ctx": -1}}, "slot_context", 0),
    ({"default_generation_settings": {"n_ctx": "4096"}}, "slot_context", 0),
    ({"default_generation_settings": {"n_ctx": True}}, "slot_context", 0),
    ({"default_generation_settings": {"n_ctx": 4096.5}}, "slot_context", 0),
], ids=str)
def test_what_is_missing_or_odd_is_unknown(
        changes: dict[str, Any], field: str, value: object) -> None:
    """Older and newer servers say less or more, and nothing of it is guessed."""
    found = parse_props(200, props(**changes))
    assert found is not None and found.is_llama_server
    assert getattr(found, field) == value


@pytest.mark.parametrize(("status", "body", "expected"), [
    (404, b'{"detail":"Not Found"}', OPENAI), (404, b"", OPENAI), (405, b"", OPENAI),
    (400, b"{}", OPENAI), (501, b"", None), (301, b"", OPENAI), (200, b"<html>", OPENAI),
    (200, b"[]", OPENAI), (200, b"{}", OPENAI), (200, b"", OPENAI), (200, b'{"a":1}', OPENAI),
    (200, b'{"default_generation_settings":5}', OPENAI), (404, props(), OPENAI),
    (503, LOADING, None), (500, b"<html>", None), (502, b"", None), (504, props(), None),
    (401, b'{"error":{"code":401}}', None), (403, b"", None), (429, b"", None),
])
def test_any_other_answer_is_another_engines_or_none(
        status: int, body: bytes, expected: EngineFacts | None) -> None:
    """Who is loading, broken or not answering us may be either."""
    assert parse_props(status, body) == expected


class FakeEngine:
    """Answers from a list, the last one for ever; an error is raised."""

    def __init__(self, *answers: tuple[int, bytes] | GatewayError) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.now = 0.0

    def __call__(self, target: str) -> tuple[int, bytes]:
        self.asked.append(target)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, GatewayError):
            raise answer
        return answer

    def cache(self, kind: str | None = None) -> PropsCache:
        """A cache of what this engine says, by its own clock."""
        return PropsCache(self, kind, lambda: self.now)


GOOD = (200, props())
REFUSED = GatewayError(Kind.ENGINE_UNAVAILABLE, "no engine is listening")


def test_an_answer_counts_for_ten_seconds() -> None:
    """Then the engine is asked again: it may be another one by now."""
    engine = FakeEngine(GOOD, (404, b""))
    cache = engine.cache()
    for engine.now in (0.0, 5.0, 9.9):
        assert cache.of("m") == FULL
    assert len(engine.asked) == 1
    engine.now = 10.0
    assert cache.of("m") == OPENAI
    assert len(engine.asked) == 2


@pytest.mark.parametrize("silence", [REFUSED, (503, LOADING)], ids=["refused", "loading"])
def test_an_engine_that_falls_silent_is_still_known(silence: Any) -> None:
    """What it said goes on to count; it is asked once a second."""
    engine = FakeEngine(GOOD, silence)
    cache = engine.cache()
    for engine.now in (0.0, 20.0, 20.5, 21.1):
        assert cache.of("m") == FULL
    assert len(engine.asked) == 3


@pytest.mark.parametrize(("kind", "unknown"), [(None, None), ("llama-server", LLAMA)])
def test_an_engine_that_never_answered_is_as_configured(
        kind: str | None, unknown: EngineFacts | None) -> None:
    """And known as soon as it does, a second later."""
    engine = FakeEngine(REFUSED, GOOD)
    cache = engine.cache(kind)
    assert cache.known("m") == unknown
    for engine.now in (0.0, 0.9):
        assert cache.of("m") == unknown
    assert len(engine.asked) == 1
    engine.now = 1.0
    assert cache.of("m") == cache.known("m") == FULL


@pytest.mark.parametrize(("kind", "facts"), [("llama-server", LLAMA), (None, OPENAI)])
def test_the_configured_kind_counts_more_than_no_props(
        kind: str | None, facts: EngineFacts) -> None:
    """Something before the engine may hide that path."""
    assert FakeEngine((404, b"")).cache(kind).of("m") == facts


def test_an_openai_engine_is_never_asked() -> None:
    """Where that is what it is configured to be."""
    engine = FakeEngine(GOOD)
    cache = engine.cache("openai")
    assert cache.of("m") == cache.known("m") == OPENAI
    assert engine.asked == []


def test_a_question_loads_no_model() -> None:
    """A server that routes is told so; one that has not loaded the model still shows its kind."""
    router = (200, props(model_path="none", default_generation_settings={"n_ctx": 0}))
    engine = FakeEngine((400, b'{"error":{"message":"model is not loaded"}}'), router)
    found = engine.cache().of("org/m a:Q4")
    assert engine.asked == ["/props?model=org%2Fm%20a%3AQ4&autoload=false", "/props"]
    assert found is not None and found.is_llama_server and not found.described


def test_models_are_known_apart() -> None:
    """One engine may have several, and each its own context."""
    engine = FakeEngine(GOOD, (200, props(default_generation_settings={"n_ctx": 512})))
    cache = engine.cache()
    assert [found.slot_context for name in "abab" if (found := cache.of(name))] == [4096, 512] * 2
    assert len(engine.asked) == 2


def test_many_names_do_not_fill_the_memory() -> None:
    """The one asked about longest ago is forgotten."""
    engine = FakeEngine(GOOD)
    cache = engine.cache()
    for number in range(4097):
        cache.of(str(number))
    assert cache.known("0") is None and cache.known("4096") == FULL


def test_one_asks_again_while_the_others_go_on() -> None:
    """Nobody waits for a slow engine that has said something before."""
    asked, answer = threading.Event(), threading.Event()
    answers = iter([lambda: GOOD, lambda: (asked.set(), answer.wait(20), GOOD)[-1]])
    clock = [0.0]
    cache = PropsCache(lambda target: next(answers)(), None, lambda: clock[0])
    assert cache.of("m") == FULL
    clock[0] = 30.0
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(cache.of, "m")
        assert asked.wait(20)
        assert [cache.of("m") for _ in range(5)] == [FULL] * 5
        assert not slow.done()
        answer.set()
        assert slow.result(20) == FULL


Ask = Callable[[str], tuple[int, bytes]]


def ask_at(url: str, key: str | None = None) -> Ask:
    """What the cache asks by, over a socket."""
    return asking(EngineClient(url, key, LIMITS, connections=2), QUICK)


def test_a_question_goes_out_with_the_engines_key() -> None:
    """As a GET without a body; the answer is taken whatever its status."""
    with RawEngine() as engine:
        for status in (200, 404, 503):
            engine.probe_script = reply(status, props())
            assert ask_at(engine.url, "E")("/props") == (status, props())
        [first, *_] = engine.probes
        assert first.line == "GET /props HTTP/1.1"
        assert first.all("Authorization") == ["Bearer E"]
        assert (first.body, first.all("Content-Length")) == (b"", [])


def test_facts_come_over_the_wire() -> None:
    """And once they are there, the engine is left alone."""
    with RawEngine() as engine:
        engine.probe_script = reply(200, props())
        cache = PropsCache(ask_at(engine.url), None)
        assert [cache.of("m") for _ in range(5)] == [FULL] * 5
        assert len(engine.probes) == 1


@pytest.mark.parametrize("script", [silence, reply(503, LOADING)], ids=["silent", "loading"])
def test_an_engine_that_does_not_answer_holds_nobody_up(script: Any) -> None:
    """Its facts are unknown then, within the limit of the question."""
    with RawEngine() as engine:
        engine.probe_script = script
        assert PropsCache(ask_at(engine.url), None).of("m") is None
    assert PropsCache(ask_at(refusing_url()), None).of("m") is None
    assert QUICK <= 0.2
