"""The road of a call: which model a name means, which engine gets it, what is not tried again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from app.api.payload import JsonBody
from app.call import Call, Reply
from app.catalog.facts import FactsCache
from app.catalog.registry import Registry
from app.engines.admission import Admission, QueueRules
from app.engines.client import EngineClient
from app.engines.command import Surroundings
from app.engines.engine import Attached
from app.engines.failures import Limits
from app.engines.fleet import Entry, Fleet, Owners
from app.engines.hangup import Departure
from app.engines.loaded import LoadedModels
from app.engines.policy import Policy, PolicyInForce
from app.engines.prober import Prober
from app.engines.router import Served
from app.engines.status import Status
from app.engines.stock import Stock
from app.engines.supervisor import Supervisor
from app.errors import GatewayError, Kind
from app.gateway import Gateway
from app.jsontext import decode, encode
from app.routes import Lasting, Names, Routes
from app.settings import EngineSettings
from tests.fakes.registry_home import RegistryHome

NOON = datetime(2026, 10, 3, 12, tzinfo=timezone.utc)
OK = Reply.whole(200, [], b"{}")
REFUSED = GatewayError(Kind.ENGINE_UNAVAILABLE, "no engine is listening")


class Engine(EngineClient):
    """An engine without a network: it notes what it is sent and gives what it is told to."""

    def __init__(self, outcome: Reply | GatewayError = OK) -> None:
        super().__init__("http://unused", None, Limits(1.0, 1.0), connections=1)
        self.outcome = outcome
        self.calls: list[Call] = []

    def send(self, call: Call, departure: Departure, heard: Callable[[], None] = lambda: None
             ) -> Reply:
        """Note the call; give the answer, or raise the error, that was set."""
        self.calls.append(call)
        if isinstance(self.outcome, GatewayError):
            raise self.outcome
        return self.outcome


Build = Callable[..., Gateway]


POLICY = Policy(QueueRules(size=8, max_wait=5.0), 300, None, 5.0)


class Engines(Stock):
    """These engines, by the numbers in their addresses; the first place is preferred."""

    def __init__(self, engines: list[Engine]) -> None:
        super().__init__(PolicyInForce(POLICY), 1)
        self._clients = engines

    def _made(self, settings: EngineSettings) -> Attached:
        client = self._clients[int(settings.url.removeprefix("http://e"))]
        return Attached(settings, client, client, Admission(POLICY.queue, None))


@pytest.fixture
def build(registry_home: RegistryHome) -> Build:
    """A function that builds a gateway from engines by pattern, aliases and default model."""
    def built(*engines: tuple[str, Engine], aliases: dict[str, str] | None = None,
              default: str | None = None, clock: Callable[[], datetime] = lambda: NOON,
              max_choices: int | None = None) -> Gateway:
        registry = Registry(registry_home.path)
        policy = PolicyInForce(POLICY)
        supervisor, used = Supervisor(policy), LoadedModels(policy.keep_alive, clock)
        entries = [
            Entry(Served(tuple(patterns.split())),
                  EngineSettings(f"http://e{number}", (), max_choices=max_choices))
            for number, (patterns, _) in enumerate(engines)]
        fleet = Fleet(entries, Owners(Engines([engine for _, engine in engines]), supervisor),
                      Surroundings(registry, FactsCache(), registry_home.path, 1))
        routes = Routes(Names(aliases or {}, default), fleet, Status(fleet, used, clock),
                        Prober(fleet, supervisor, 10.0), POLICY)
        return Gateway(routes, Lasting(registry, supervisor, used, policy), places=8)
    return built


def call(model: str | None) -> Call:
    """A call as the API makes it of a body with or without a model."""
    fields = {"x": 1} if model is None else {"x": 1, "model": model, "y": 2}
    raw = b'{ "x":1 }' if model is None else b'{ "x":1, "model":"%b", "y":2 }' % model.encode()
    return Call("/v1/chat/completions", model, JsonBody(raw, fields), "id")


def error_of(gateway: Gateway, model: str | None) -> GatewayError:
    """The error that a call for this model ends in."""
    with pytest.raises(GatewayError) as raised:
        gateway.call(call(model))
    return raised.value


MEANINGS = [
    ("org/Pulled:Q4", "org/Pulled:Q4"),
    ("ORG/pulled:q4", "org/Pulled:Q4"),
    ("plain", "Plain"),
    ("Plain", "Plain"),
    ("plain:latest", "Plain"),
    ("PLAIN:LATEST", "Plain"),
    ("tagged", "tagged:latest"),
    ("Configured:F32", "Configured:F32"),
    ("configured:f32", "Configured:F32"),
    ("glob/anything", "glob/anything"),
    ("GLOB/Anything:x", "GLOB/Anything:x"),
    ("short", "org/Pulled:Q4"),
    ("SHORT", "org/Pulled:Q4"),
    ("short:latest", "org/Pulled:Q4"),
    ("short:v2", "Plain"),
    ("gpt-4o", "Configured:F32"),
    ("to-plain", "Plain"),
    ("hidden", "glob/instead"),
]


@pytest.mark.parametrize(("asked", "meant"), MEANINGS)
def test_a_name_means_one_model(registry_home: RegistryHome, build: Build, asked: str,
                                meant: str) -> None:
    """Alias, case and tag are settled; the engine gets the spelling of the registry."""
    for name in ("org/Pulled:Q4", "Plain", "tagged:latest", "hidden"):
        registry_home.add(name)
    engine = Engine()
    gateway = build(("org/pulled:* plain tagged Configured:F32 hidden", engine),
                    ("glob/*", engine), aliases={
                        "short": "org/Pulled:Q4", "short:v2": "plain", "gpt-4o": "configured:f32",
                        "to-plain": "PLAIN:latest", "hidden": "glob/instead"})
    assert gateway.resolve(asked) == meant
    assert gateway.call(call(asked)).pieces is OK.pieces
    [sent] = engine.calls
    assert sent.model == meant
    assert decode(sent.body.raw) == sent.body.fields == {"x": 1, "model": meant, "y": 2}


def test_a_call_whose_name_is_right_keeps_its_bytes(build: Build) -> None:
    """Nothing has to change, so nothing does."""
    engine, asked = Engine(), call("m")
    build(("m", engine)).call(asked)
    assert engine.calls[0].body.raw is asked.body.raw


def test_a_call_by_alias_changes_the_model_only(build: Build) -> None:
    """Order and numbers stay, and so do path and id."""
    raw = b'{"seed":9007199254740993, "model":"a","f":1E2,"z":-0,"m":{"model":"a"}}'
    asked = Call("/v1/x", "a", JsonBody(raw, decode(raw)), "id-7")
    engine = Engine()
    build(("m", engine), aliases={"a": "m"}).call(asked)
    [sent] = engine.calls
    assert (sent.target, sent.request_id) == ("/v1/x", "id-7")
    assert sent.body.raw == (
        b'{"seed":9007199254740993,"model":"m","f":100.0,"z":-0.0,"m":{"model":"a"}}')


@pytest.mark.parametrize("name", ["nope", "m:2", "M2", "twice-removed", "gone", "pulled-only"])
def test_an_unknown_model_is_told_by_the_name_that_was_asked(
        registry_home: RegistryHome, build: Build, name: str) -> None:
    """Not configured, or an alias that leads nowhere; an alias of an alias is none."""
    registry_home.add("pulled-only")
    engine = Engine()
    aliases = {"gone": "nowhere", "twice-removed": "once", "once": "m"}
    gateway = build(("m", engine), aliases=aliases)
    error = error_of(gateway, name)
    assert (error.kind, error.param, error.model) == (Kind.UNKNOWN_MODEL, "model", name)
    assert error.message == f"the model '{name}' does not exist"
    assert engine.calls == []


def test_without_engines_every_model_is_unknown(build: Build) -> None:
    """A gateway may run before its engines are configured."""
    assert error_of(build(), "m").kind is Kind.UNKNOWN_MODEL


@pytest.mark.parametrize(("default", "meant"), [("m", "m"), ("M:latest", "m"), ("short", "m")])
@pytest.mark.parametrize("asked", [None, ""])
def test_a_call_without_a_model_means_the_default(
        build: Build, default: str, meant: str, asked: str | None) -> None:
    """The engine is told which that is; the default may be an alias."""
    engine = Engine()
    build(("m", engine), aliases={"short": "m"}, default=default).call(call(asked))
    [sent] = engine.calls
    assert sent.model == meant
    assert decode(sent.body.raw)["model"] == meant


def test_a_default_that_leads_nowhere_is_told(build: Build) -> None:
    """The message has the name from the configuration."""
    error = error_of(build(("m", Engine()), default="nope"), None)
    assert (error.kind, error.message) == (
        Kind.UNKNOWN_MODEL, "the model 'nope' does not exist")


def test_without_a_default_the_model_is_missing(build: Build) -> None:
    """It is a wrong field of the request."""
    error = error_of(build(("m", Engine())), None)
    assert (error.kind, error.param, error.message) == (
        Kind.INVALID_FIELD, "model", "'model' must not be blank")


def test_the_default_may_be_the_model_used_last(build: Build) -> None:
    """Before the first use, and after the keep-alive time, there is none."""
    now = [NOON]
    engine = Engine()
    gateway = build(("a b", engine), default="loaded", clock=lambda: now[0])
    assert (error_of(gateway, None).kind, error_of(gateway, None).message) == (
        Kind.NO_MODEL_LOADED, "no model is currently loaded")
    for name in ("b", "a"):
        now[0] += timedelta(seconds=1)
        gateway.call(call(name))
        gateway.call(call(None))
        assert engine.calls[-1].model == name
    now[0] += timedelta(minutes=5)
    assert error_of(gateway, None).kind is Kind.NO_MODEL_LOADED


def test_the_first_engine_that_serves_the_model_gets_the_call(build: Build) -> None:
    """Of engines that are alike, in the order of the configuration, and only that one."""
    engines = [Engine(), Engine(), Engine()]
    build(("other", engines[0]), ("m", engines[1]), ("*", engines[2])).call(call("m"))
    assert [len(engine.calls) for engine in engines] == [0, 1, 0]


def test_a_conversation_stays_with_its_engine(build: Build) -> None:
    """Each turn of it goes where the first one went; different ones are spread."""
    engines = [Engine(), Engine(), Engine()]
    gateway = build(*(("m", engine) for engine in engines))
    used = set()
    for number in range(24):
        messages = [{"role": "system", "content": "s"}, {"role": "user", "content": str(number)}]
        for _ in range(3):
            fields = {"model": "m", "messages": messages}
            before = [len(engine.calls) for engine in engines]
            gateway.call(Call("/v1/chat/completions", "m", JsonBody(encode(fields), fields), "id"))
            after = [len(engine.calls) for engine in engines]
            used.add((number, [a - b for a, b in zip(after, before)].index(1)))
            messages = [*messages, {"role": "assistant", "content": "x"}]
    assert len(used) == 24
    assert {engine for _, engine in used} == {0, 1, 2}


def test_a_named_session_stays_with_its_engine(build: Build) -> None:
    """Whatever is said in it."""
    engines = [Engine(), Engine()]
    gateway = build(*(("m", engine) for engine in engines))
    for number in range(8):
        fields = {"model": "m", "messages": [{"role": "user", "content": str(number)}]}
        gateway.call(Call("/v1/x", "m", JsonBody(encode(fields), fields), "id", session="s"))
    assert sorted(len(engine.calls) for engine in engines) == [0, 8]


@pytest.mark.parametrize(("field", "choices"), [
    *(("n", {"n": wanted}) for wanted in (2, 0, -1, 1.5, "1", True, [1])),
    ("n_cmpl", {"n_cmpl": 2}), ("n_cmpl", {"n_cmpl": 2, "n": 1}), ("n", {"n_cmpl": 1, "n": 2})])
def test_more_choices_than_every_engine_takes_are_refused(
        build: Build, field: str, choices: dict[str, object]) -> None:
    """Before an engine sees the call; the field is named."""
    engine = Engine()
    with pytest.raises(GatewayError) as raised:
        build(("m", engine), max_choices=1).call(replace(call("m"), choices=choices))
    assert (raised.value.kind, raised.value.param) == (Kind.INVALID_FIELD, field)
    assert raised.value.message == f"'{field}' must be 1 for this model"
    assert engine.calls == []


@pytest.mark.parametrize(("choices", "most"), [
    ({}, 1), ({"n": 1}, 1), ({"n": 1.0}, 1), ({"n": 3}, 3), ({"n": 3}, None), ({"n_cmpl": 1}, 1),
    ({"n_cmpl": 3, "n": 2}, 3), ({"n_cmpl": 3}, None)])
def test_as_many_choices_as_an_engine_takes_pass(
        build: Build, choices: dict[str, object], most: int | None) -> None:
    """Without a bound the engine decides itself."""
    gateway = build(("m", Engine()), max_choices=most)
    assert gateway.call(replace(call("m"), choices=choices)).status == 200


def test_an_engine_that_refused_is_passed_over(build: Build) -> None:
    """It has seen nothing, so the next one may have the call."""
    engines = [Engine(REFUSED), Engine(REFUSED), Engine(), Engine()]
    gateway = build(*(("m", engine) for engine in engines))
    assert gateway.call(call("m")).pieces is OK.pieces
    assert [len(engine.calls) for engine in engines] == [1, 1, 1, 0]
    assert engines[0].calls == engines[2].calls


def test_where_all_refused_the_last_is_told(build: Build) -> None:
    """Each was asked once."""
    last = GatewayError(Kind.ENGINE_UNAVAILABLE, "nor here")
    engines = [Engine(REFUSED), Engine(last)]
    assert error_of(build(*(("m", engine) for engine in engines)), "m") is last
    assert [len(engine.calls) for engine in engines] == [1, 1]


@pytest.mark.parametrize(
    "kind", sorted(set(Kind) - {Kind.ENGINE_UNAVAILABLE, Kind.ENGINE_NOT_READY}, key=str))
def test_no_other_failure_is_tried_elsewhere(build: Build, kind: Kind) -> None:
    """The engine may have worked on the call already."""
    failure = GatewayError(kind, "failed")
    first, second = Engine(failure), Engine()
    assert error_of(build(("m", first), ("m", second)), "m") is failure
    assert (len(first.calls), second.calls) == (1, [])


@pytest.mark.parametrize("status", [400, 404, 429, 503])
def test_an_answer_that_is_no_success_is_not_tried_elsewhere(build: Build, status: int) -> None:
    """The engine has spoken."""
    first, second = Engine(Reply.whole(status, [], b"no")), Engine()
    assert build(("m", first), ("m", second)).call(call("m")).status == status
    assert second.calls == []


@pytest.mark.parametrize(("outcome", "counts"), [
    *((Reply.whole(status, [], b""), True) for status in (200, 201, 299)),
    *((Reply.whole(status, [], b""), False) for status in (400, 404, 503)),
    (REFUSED, False), (GatewayError(Kind.UPSTREAM_ERROR, "x"), False),
    (GatewayError(Kind.ENGINE_TIMEOUT, "x"), False)])
def test_a_model_counts_as_loaded_after_a_success_only(
        build: Build, outcome: Reply | GatewayError, counts: bool) -> None:
    """Under its own name, whatever it was asked by."""
    gateway = build(("m", Engine(outcome)), aliases={"short": "m"})
    assert gateway.status.present() == {}
    try:
        gateway.call(call("SHORT"))
    except GatewayError as error:
        assert error is outcome
    status = gateway.status.of("m")
    assert (status.loaded, status.until) == (
        (True, NOON + timedelta(minutes=5)) if counts else (False, None))
