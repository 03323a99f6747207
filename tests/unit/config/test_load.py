"""Files and variables become settings, and every key counts."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.config import ConfigError, load
from app.config.schema import ENGINE, KEY, ROOT
from app.settings import (
    EngineSettings, KeySettings, LoopSettings, QueueSettings, ServerSettings, Settings,
)

SHIPPED = Path(__file__).parents[3] / "etc" / "gateway.yml"
Load = Callable[..., Settings]


@pytest.fixture
def load_text(tmp_path: Path) -> Load:
    """A function that loads one file of this content, with these variables."""
    def loaded(text: str, **variables: str) -> Settings:
        path = tmp_path / "gateway.yml"
        path.write_text(text, encoding="utf-8")
        return load({"LOOP_CONFIG": str(path), **variables})
    return loaded


def leaves(section: Mapping[str, Any], data: Any, path: str = "") -> list[str]:
    """The keys of a schema that stand in a document."""
    found = []
    for key, inner in section.items():
        if isinstance(data, dict) and key in data:
            below = isinstance(inner, Mapping)
            found += leaves(inner, data[key], f"{path}{key}.") if below else [f"{path}{key}"]
    return found


def all_leaves(section: Mapping[str, Any], path: str = "") -> list[str]:
    """The keys of a schema."""
    return [leaf for key, inner in section.items() for leaf in (
        all_leaves(inner, f"{path}{key}.") if isinstance(inner, Mapping) else [f"{path}{key}"])]


def test_without_anything_the_defaults_hold() -> None:
    """The shipped file says what the built-in defaults are."""
    assert load({}) == Settings()


def test_the_shipped_file_need_not_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package without it has the same defaults."""
    monkeypatch.setattr(sys.modules[load.__module__], "DEFAULTS", Path("/no/such/gateway.yml"))
    assert load({}) == Settings()


def test_the_shipped_file_has_every_key() -> None:
    """Whoever reads it sees all that can be set, with nothing made up."""
    data = yaml.safe_load(SHIPPED.read_text("utf-8"))
    assert leaves(ROOT, data) == all_leaves(ROOT)


def test_the_shipped_file_explains_every_key() -> None:
    """Each line has a comment, and the keys of an engine stand in one."""
    text = SHIPPED.read_text("utf-8")
    for line in text.splitlines():
        assert "#" in line or line in ("server:", "loop:"), line
    engine = text[text.index("engines:"):text.index("queue:")]
    for key in ENGINE:
        assert re.search(rf"(# .*\b){key}\b", engine), key
    entry = text[text.index("keys:"):text.index("keys-file:")]
    for key in KEY:
        assert re.search(rf"(# .*\b){key}\b", entry), key


def test_the_lessons_file_works_unchanged(load_text: Load) -> None:
    """Port, home, read timeout and two engines."""
    found = load_text("""
server:
  port: 18660
loop:
  home: /tmp/gw66/home
  read-timeout: 1s
  engines:
    - url: http://127.0.0.1:18661
      models:
        - example-org/Tiny-Coder-GGUF:F32
    - url: http://127.0.0.1:18662
      models:
        - example-org/Tiny-Chat-GGUF:F32
""")
    assert found == Settings(ServerSettings(port=18660), LoopSettings(
        home=Path("/tmp/gw66/home"), read_timeout=1.0, engines=(
            EngineSettings("http://127.0.0.1:18661", ("example-org/Tiny-Coder-GGUF:F32",)),
            EngineSettings("http://127.0.0.1:18662", ("example-org/Tiny-Chat-GGUF:F32",)))))


EVERYTHING = """
server: {address: 0.0.0.0, port: 1, threads: 2, max-body: 3B, body-timeout: 4s,
         write-timeout: 5s, stop-timeout: 6s, allow-anonymous: true, allowed-hosts: [a],
         cors-origins: ["b://*"], ollama-version: "0.40.1", allow-remote-media: true,
         rate-storage: "redis://h", log-format: text, one-cpu: false}
loop:
  home: /h
  connect-timeout: 1s
  read-timeout: 2s
  keep-alive: 3s
  default-model: loaded
  aliases: {x: y}
  engines:
  - {url: "http://e/", models: ["*"], api-key: k, connect-timeout: 4s, read-timeout: 5s, slots: 6,
     kind: openai, max-choices: 7, start-timeout: 8s, stop-timeout: 9s, pinned: true,
     preload: true, strikes: 10}
  queue: {size: 11, max-wait: 12s}
  memory-budget: 13B
  min-residency: 14s
  probe-interval: 15s
keys:
- {name: a, sha256: "%s", models: [m], scopes: [admin], rate: 16/day, concurrency: 17,
   max-priority: LOW, expires: 2030-01-01}
keys-file: null
""" % ("ab" * 32)
ALL_SETTINGS = Settings(
    ServerSettings("0.0.0.0", 1, 2, 3, 4.0, 5.0, 6.0, True, ("a",), ("b://*",), "0.40.1",
                   True, "redis://h", "text", False),
    LoopSettings(
        Path("/h"), 1.0, 2.0, 3.0, "loaded", {"x": "y"},
        (EngineSettings("http://e", ("*",), "k", 4.0, 5.0, 6, "openai", 7, 8.0, 9.0, True, True,
                        10),),
        QueueSettings(11, 12.0), 13, 14.0, 15.0),
    (KeySettings("a", "ab" * 32, ("m",), ("admin",), "16/day", 17, "LOW",
                 datetime(2030, 1, 2, tzinfo=timezone.utc)),))


def test_every_key_arrives(load_text: Load) -> None:
    """Each has its own place in the settings."""
    data = yaml.safe_load(EVERYTHING)
    assert leaves(ROOT, data) == all_leaves(ROOT)
    assert leaves(KEY, data["keys"][0]) == all_leaves(KEY)
    assert load_text(EVERYTHING) == ALL_SETTINGS


def test_every_key_may_be_written_in_snake_case(load_text: Load) -> None:
    """Underscores and hyphens are the same."""
    assert load_text(re.sub(r"([a-z])-(?=[a-z-]+:)", r"\1_", EVERYTHING)) == ALL_SETTINGS


@pytest.mark.parametrize("key", ["api-key", "connect-timeout", "read-timeout", "slots", "kind",
                                 "max-choices"])
def test_null_is_the_default_of_an_engines_key(load_text: Load, key: str) -> None:
    """What may be left out may be null."""
    found = load_text(f"loop: {{engines: [{{url: 'http://e', models: [m], {key}: null}}]}}")
    assert found.loop.engines == (EngineSettings("http://e", ("m",)),)


def test_the_later_file_wins(tmp_path: Path) -> None:
    """Files are laid one on the other key by key; a list is replaced as a whole."""
    texts = ["server: {port: 1, threads: 1}\nloop: {engines: [{url: 'http://a', models: [a]}]}",
             "server: {port: 2}\nloop: {default-model: b}",
             "loop: {engines: [{url: 'http://c', models: [c]}], default-model: null}"]
    paths = [tmp_path / f"{number}.yml" for number in range(len(texts))]
    for path, text in zip(paths, texts):
        path.write_text(text, encoding="utf-8")
    found = load({"LOOP_CONFIG": ":".join(map(str, paths))})
    assert found.server == ServerSettings(port=2, threads=1)
    assert found.loop == replace(LoopSettings(), engines=(EngineSettings("http://c", ("c",)),))


@pytest.mark.parametrize("names", ["", ":", "::"])
def test_no_file_is_named(names: str) -> None:
    """An empty LOOP_CONFIG is none."""
    assert load({"LOOP_CONFIG": names}) == Settings()


def test_a_file_below_the_users_home_is_found(tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """A ~ in LOOP_CONFIG is expanded, as a service's unit file would not do it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "g.yml").write_text("server: {port: 5}")
    assert load({"LOOP_CONFIG": "~/g.yml"}).server.port == 5


@pytest.mark.parametrize(("name", "text", "where", "value"), [
    ("LOOP_SERVER_PORT", "18660", "server.port", 18660),
    ("LOOP_SERVER_ADDRESS", "::1", "server.address", "::1"),
    ("LOOP_SERVER_MAX_BODY", "1MiB", "server.max_body", 2**20),
    ("LOOP_SERVER_ALLOW_ANONYMOUS", "true", "server.allow_anonymous", True),
    ("LOOP_SERVER_ALLOWED_HOSTS", "[a, b]", "server.allowed_hosts", ("a", "b")),
    ("LOOP_LOOP_READ_TIMEOUT", "1s", "loop.read_timeout", 1.0),
    ("LOOP_LOOP_HOME", "/srv/loop", "loop.home", Path("/srv/loop")),
    ("LOOP_LOOP_DEFAULT_MODEL", "m", "loop.default_model", "m"),
    ("LOOP_LOOP_DEFAULT_MODEL", "", "loop.default_model", None),
    ("LOOP_LOOP_ALIASES", "{x: y}", "loop.aliases", {"x": "y"}),
    ("LOOP_LOOP_QUEUE_SIZE", "0", "loop.queue.size", 0),
    ("LOOP_LOOP_MEMORY_BUDGET", "", "loop.memory_budget", None),
    ("LOOP_LOOP_ENGINES", "[{url: 'http://e', models: [m]}]", "loop.engines",
     (EngineSettings("http://e", ("m",)),)),
])
def test_a_variable_is_laid_on_top_of_all_files(
        load_text: Load, name: str, text: str, where: str, value: Any) -> None:
    """Every kind of value can be set by a variable, and nothing else changes."""
    found: Any = load_text(EVERYTHING.replace("0.0.0.0", "127.0.0.1"), **{name: text})
    for part in where.split("."):
        found = getattr(found, part)
    assert found == value


@pytest.mark.parametrize(("text", "where", "value"), [
    ("loop: {default-model: '${A}'}", "default_model", "one"),
    ("loop: {default-model: 'x${A}${B}y'}", "default_model", "xone${A}y"),
    ("loop: {home: '/${A}/z'}", "home", Path("/one/z")),
    ("loop: {keep-alive: '${TIME}'}", "keep_alive", 7.0),
    ("loop: {queue: {size: '${NUMBER}'}}", "queue", QueueSettings(size=9)),
    ("loop: {aliases: {x: '${A}'}}", "aliases", {"x": "one"}),
    ("loop: {engines: [{url: 'http://${A}', models: ['${A}:f'], api-key: '${A}'}]}", "engines",
     (EngineSettings("http://one", ("one:f",), "one"),)),
    ("loop: {engines: [{url: 'http://e', models: [m], api-key: '${EMPTY}'}]}", "engines",
     (EngineSettings("http://e", ("m",), None),)),
    ("loop: {default-model: '$A'}", "default_model", "$A"),
])
def test_variables_are_put_in(load_text: Load, text: str, where: str, value: Any) -> None:
    """${NAME} works in every text, once: what a variable holds is not looked at again."""
    found = load_text(text, A="one", B="${A}", TIME="7s", NUMBER="9", EMPTY="")
    assert getattr(found.loop, where) == value


def test_a_variable_may_name_another(load_text: Load) -> None:
    """A LOOP_ variable is expanded like a value of a file."""
    assert load_text("", LOOP_LOOP_HOME="${BASE}/loop", BASE="/srv").loop.home == Path("/srv/loop")


@pytest.mark.parametrize("text", [
    "loop: {home: '${NOWHERE}'}", "loop: {aliases: {x: '${NOWHERE}'}}",
    "loop: {engines: [{url: 'http://e', models: ['${NOWHERE}']}]}",
    "loop: {engines: [{url: 'http://e', models: [m], api-key: '${NOWHERE}'}]}"])
def test_an_unset_variable_is_a_problem(load_text: Load, text: str) -> None:
    """It is named, so that it can be set."""
    with pytest.raises(ConfigError, match="names the variable NOWHERE, which is not set"):
        load_text(text)
