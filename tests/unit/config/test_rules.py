"""Rules between values: who may reach the gateway, one entry per engine, keys without effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.config import ConfigError, inert, load, rules
from app.settings import Settings


def loaded(directory: Path, text: str, **variables: str) -> Settings:
    """The settings of one file with this content."""
    path = directory / "gateway.yml"
    path.write_text(text, encoding="utf-8")
    return load({"LOOP_CONFIG": str(path), **variables})


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "localhost", "::1", "[::1]"])
def test_a_loopback_address_needs_nothing(tmp_path: Path, address: str) -> None:
    """Only this machine can reach it."""
    assert loaded(tmp_path, f"server: {{address: '{address}'}}").server.address == address


EXPOSED = ["0.0.0.0", "::", "[::]", "192.168.1.5", "10.0.0.1", "2001:db8::1", "fe80::1",
           "example.org", "127.0.0.1.example.org", "localhost.example.org", "*", "0"]


@pytest.mark.parametrize("address", EXPOSED)
def test_an_address_that_others_reach_is_refused(tmp_path: Path, address: str) -> None:
    """Without keys anyone could use the engines; the problem names both ways out."""
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, f"server: {{address: '{address}'}}")
    [problem] = raised.value.problems
    assert (problem.source, problem.path, problem.value) == (
        str(tmp_path / "gateway.yml"), "server.address", address)
    assert "127.0.0.1" in problem.rule and "server.allow-anonymous: true" in problem.rule


@pytest.mark.parametrize("address", EXPOSED)
def test_who_allows_it_may_listen_anywhere(tmp_path: Path, address: str) -> None:
    """The operator has said that it is meant."""
    text = f"server: {{address: '{address}', allow-anonymous: true}}"
    assert loaded(tmp_path, text).server.address == address


@pytest.mark.parametrize("address", EXPOSED)
def test_who_has_keys_may_listen_anywhere(tmp_path: Path, address: str) -> None:
    """Whoever reaches it needs one."""
    text = f"server: {{address: '{address}'}}\nkeys: [{{name: a, sha256: '{'0' * 64}'}}]"
    assert loaded(tmp_path, text).server.address == address


@pytest.mark.parametrize(("keys", "paths"), [
    ("keys: []", ["server.address"]), ("keys: null", ["server.address"]),
    ("keys: [{name: a, sha256: sk-1}]", ["keys[0].sha256"]), ("keys: sk-1", ["keys"])])
def test_keys_that_are_refused_are_no_reason_to_do_without(
        tmp_path: Path, keys: str, paths: list[str]) -> None:
    """The problem is the key, and the address only where there is none."""
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, f"server: {{address: 0.0.0.0}}\n{keys}")
    assert [problem.path for problem in raised.value.problems] == paths


def test_a_variable_that_exposes_the_gateway_is_named(tmp_path: Path) -> None:
    """The source of the problem is where the address comes from."""
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, "server: {address: 127.0.0.1}", LOOP_SERVER_ADDRESS="0.0.0.0")
    assert [problem.source for problem in raised.value.problems] == ["LOOP_SERVER_ADDRESS"]


def engines(*urls: str) -> str:
    """A configuration with an engine for each of these."""
    return f"loop: {{engines: [{', '.join(f'{{url: {u!r}, models: [m]}}' for u in urls)}]}}"


@pytest.mark.parametrize(("first", "second"), [
    ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
    ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
    ("http://host", "http://HOST:80"),
    ("https://host:443/base", "https://host/base/"),
    ("http://[::1]:80", "http://[::1]"),
])
def test_two_entries_of_one_engine_are_refused(tmp_path: Path, first: str, second: str) -> None:
    """Its slots would be counted twice; every spelling of an address is the same engine."""
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, engines("http://other:1", first, second))
    [problem] = raised.value.problems
    assert problem.path == "loop.engines[2].url"
    assert problem.rule == "is the url of loop.engines[1] too; put their models into one entry"


@pytest.mark.parametrize(("first", "second"), [
    ("http://127.0.0.1:8080", "http://127.0.0.1:8081"), ("http://host", "https://host"),
    ("http://host/a", "http://host/b"), ("http://host/a", "http://host/A"),
    ("http://a", "http://b")])
def test_engines_at_different_places_are_different(
        tmp_path: Path, first: str, second: str) -> None:
    """Scheme, host, port and path tell them apart."""
    assert len(loaded(tmp_path, engines(first, second)).loop.engines) == 2


def test_three_entries_of_one_engine_are_two_problems(tmp_path: Path) -> None:
    """Each that is too many is named, with the first."""
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, engines("http://a", "http://a", "http://a"))
    assert [(p.path, "loop.engines[0]" in p.rule) for p in raised.value.problems] == [
        ("loop.engines[1].url", True), ("loop.engines[2].url", True)]


INERT = {
    **{f"loop.engines.{key}":
       f"loop: {{engines: [{{url: 'http://e', models: [m], {key}: {value}}}]}}"
       for key, value in (("stop-timeout", "1s"), ("pinned", "true"), ("preload", "true"))},
}
ACTIVE = [
    "server: {address: '::1', port: 1, threads: 1, max-body: 1B, body-timeout: 1s, "
    "write-timeout: 1s, allow-anonymous: true}",
    "loop: {home: /h, connect-timeout: 1s, read-timeout: 1s, keep-alive: 1s, "
    "default-model: m, aliases: {a: b}}",
    "loop: {engines: [{url: 'http://e', models: [m], api-key: k, connect-timeout: 1s, "
    "read-timeout: 1s, kind: openai}]}",
    "server: {ollama-version: '0.40.0', allowed-hosts: [a], cors-origins: ['https://a'], "
    "allow-remote-media: true, rate-storage: 'redis://h'}",
    f"keys: [{{name: a, sha256: '{'0' * 64}', models: [m], scopes: [admin], rate: 1/day, "
    "concurrency: 1, max-priority: LOW, expires: 2030-01-01}]",
    "loop: {queue: {size: 1, max-wait: 1s}, memory-budget: 1GiB, min-residency: 1s, "
    "probe-interval: 1s}",
    "loop: {engines: [{url: 'http://e', models: [m], slots: 1, max-choices: 1, strikes: 1, "
    "start-timeout: 1s}]}",
    "loop: {engines: [{command: builtin, models: [m], stop-timeout: 1s, pinned: true, "
    "preload: true}]}",
]


@pytest.mark.parametrize(("key", "text"), INERT.items())
def test_a_key_without_effect_is_told(tmp_path: Path, key: str, text: str) -> None:
    """What is set and read by nothing must not look as if it did something."""
    assert inert(loaded(tmp_path, text)) == [key]


@pytest.mark.parametrize("text", ["", *ACTIVE])
def test_a_key_with_effect_is_not_told(tmp_path: Path, text: str) -> None:
    """Neither defaults nor what the gateway acts on."""
    assert inert(loaded(tmp_path, text)) == []


@pytest.mark.parametrize("text", [
    "server: {allowed-hosts: []}\nkeys: []\nkeys-file: null",
    "loop: {queue: {size: 64, max-wait: 60s}}",
    "loop: {engines: [{url: 'http://e', models: [m], strikes: 3, slots: null}]}"])
def test_a_default_that_is_written_down_is_not_told(tmp_path: Path, text: str) -> None:
    """Whoever copies the shipped file hears nothing."""
    assert inert(loaded(tmp_path, text)) == []


def test_keys_without_effect_are_told_once_each(tmp_path: Path) -> None:
    """Sorted, however many engines set them."""
    text = ("loop: {engines: [{url: 'http://a', models: [m], pinned: true, stop-timeout: 1s}, "
            "{url: 'http://b', models: [m], pinned: true}]}")
    assert inert(loaded(tmp_path, text)) == ["loop.engines.pinned", "loop.engines.stop-timeout"]


def test_a_counter_elsewhere_needs_its_package(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names a Redis server is told at the start what to install."""
    text = "server: {rate-storage: 'redis://:pa55@host'}"
    assert loaded(tmp_path, text).server.rate_storage == "redis://:pa55@host"
    monkeypatch.setattr(rules, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="install the extra redis") as raised:
        loaded(tmp_path, text)
    assert "pa55" not in str(raised.value)
    assert loaded(tmp_path, "").server.rate_storage == "memory://"
