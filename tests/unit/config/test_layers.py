"""Files and variables as flat layers: which keys, from where, and what is no key at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.config.layers import Layer, read_environment, read_file
from app.config.problems import Problem


def layer_of(path: Path, text: str | bytes) -> Layer:
    """The layer of a file with this content."""
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_file(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file of a test goes."""
    return tmp_path / "gateway.yml"


@pytest.mark.parametrize(("text", "keys"), [
    ("server: {port: 1}", {"server.port": 1}),
    ("server:\n  max-body: 1MiB\nloop:\n  queue:\n    max-wait: 5s",
     {"server.max-body": "1MiB", "loop.queue.max-wait": "5s"}),
    ("server: {max_body: 1MiB}\nloop: {queue: {max_wait: 5s}}",
     {"server.max-body": "1MiB", "loop.queue.max-wait": "5s"}),
    ("loop: {default-model: null}", {"loop.default-model": None}),
    ("loop: {aliases: {a_b: c_d}}", {"loop.aliases": {"a_b": "c_d"}}),
    ("keys: []", {"keys": []}),
    ("", {}), ("# nothing\n", {}), ("server:\nloop:\n", {}), ("loop: {queue: null}", {}),
])
def test_a_file_becomes_flat_keys(path: Path, text: str, keys: dict[str, Any]) -> None:
    """Every value stands under its kebab-case path, whatever its spelling in the file."""
    layer = layer_of(path, text)
    assert {".".join(key): value for key, (value, _) in layer.values.items()} == keys
    assert {source for _, source in layer.values.values()} <= {str(path)}
    assert layer.problems == []


@pytest.mark.parametrize(("text", "rule"), [
    ("server: [", "is no valid YAML"),
    ("a: b: c", "is no valid YAML"),
    ("server: \tport: 1", "is no valid YAML"),
    (b"server: \xff", "is no valid YAML"),
    ("server: {port: 1}\n---\nloop: {}", "is no valid YAML"),
    ("server: !!python/object:os.system {}", "is no valid YAML"),
    ("[" * 1000, "is no valid YAML"),
    ("loop: {home: 2026-13-45}", "is no valid YAML"),
    ("server: {port: %s}" % ("7" * 5000), "is no valid YAML"),
    ("? [a]\n: b", "is no valid YAML"),
    ("server: {port: 1}\nserver: {port: 2}", "the key server is repeated"),
    ("loop: {home: a, home: a}", "the key home is repeated"),
    ("loop: {aliases: {a: b, a: c}}", "the key a is repeated"),
    ("loop: {engines: [{url: a, url: b}]}", "the key url is repeated"),
    ("5", "must be a mapping"),
    ("- server", "must be a mapping"),
])
def test_a_file_that_is_no_configuration_is_one_problem(
        path: Path, text: str | bytes, rule: str) -> None:
    """Whatever stands in it, reading it raises nothing, and the problem names the file."""
    layer = layer_of(path, text)
    assert layer.values == {}
    [problem] = layer.problems
    assert problem.source == str(path)
    assert rule in problem.rule and "\n" not in problem.rule


@pytest.mark.parametrize(("name", "rule"), [
    ("missing.yml", "cannot be read: No such file"), (".", "cannot be read: Is a directory")])
def test_a_file_that_cannot_be_read_is_one_problem(tmp_path: Path, name: str, rule: str) -> None:
    """The operating system's reason is told."""
    [problem] = read_file(tmp_path / name).problems
    assert (problem.source, problem.path) == (str(tmp_path / name), "")
    assert problem.rule.startswith(rule)


@pytest.mark.parametrize(("text", "where", "rule"), [
    ("sever: {port: 1}", "sever", "is no key of the configuration; did you mean server?"),
    ("server: {prot: 1}", "server.prot", "is no key of the configuration; did you mean port?"),
    ("server: {max_bdoy: 1}", "server.max_bdoy",
     "is no key of the configuration; did you mean max-body?"),
    ("loop: {queue: {sizes: 1}}", "loop.queue.sizes",
     "is no key of the configuration; did you mean size?"),
    ("server: {colour: red}", "server.colour", "is no key of the configuration"),
    ("server: {Port: 1}", "server.Port", "is no key of the configuration; did you mean port?"),
    ("5: 1", "5", "is no key of the configuration"),
    ("null: 1", "None", "is no key of the configuration"),
    ("server: {max-body: 1, max_body: 2}", "server.max_body", "is given twice; keep one spelling"),
])
def test_a_key_that_is_none_is_named(path: Path, text: str, where: str, rule: str) -> None:
    """The problem carries file and path, and the key that was probably meant."""
    assert layer_of(path, text).problems == [Problem(str(path), where, rule)]


@pytest.mark.parametrize(("text", "where", "value"), [
    ("server: 5", "server", 5),
    ("server: false", "server", False),
    ("loop: []", "loop", []),
    ("loop: {queue: big}", "loop.queue", "big"),
])
def test_a_section_must_be_a_mapping(path: Path, text: str, where: str, value: Any) -> None:
    """A value where keys belong is shown."""
    assert layer_of(path, text).problems == [
        Problem(str(path), where, "must be a mapping of keys to values", value)]


def test_one_bad_key_hides_no_other(path: Path) -> None:
    """All problems of a file are found, and its good values stay."""
    layer = layer_of(path, "server: {prot: 1, port: 2, max-body: 1, max_body: 1}\nlop: {}")
    assert {problem.path for problem in layer.problems} == {
        "server.prot", "server.max_body", "lop"}
    assert layer.values[("server", "port")] == (2, str(path))


@pytest.mark.parametrize(("name", "text", "key", "value"), [
    ("LOOP_SERVER_PORT", "18660", "server.port", "18660"),
    ("LOOP_SERVER_MAX_BODY", "1MiB", "server.max-body", "1MiB"),
    ("LOOP_LOOP_QUEUE_MAX_WAIT", "5s", "loop.queue.max-wait", "5s"),
    ("LOOP_LOOP_DEFAULT_MODEL", "", "loop.default-model", None),
    ("LOOP_LOOP_DEFAULT_MODEL", "null", "loop.default-model", None),
    ("LOOP_LOOP_DEFAULT_MODEL", "5", "loop.default-model", "5"),
    ("LOOP_LOOP_ALIASES", "{a: b}", "loop.aliases", {"a": "b"}),
    ("LOOP_SERVER_ALLOWED_HOSTS", "[a, b]", "server.allowed-hosts", ["a", "b"]),
    ("LOOP_SERVER_ALLOWED_HOSTS", "[a, b", "server.allowed-hosts", "[a, b"),
    ("LOOP_SERVER_ALLOWED_HOSTS", "[2026-13-45]", "server.allowed-hosts", "[2026-13-45]"),
    ("LOOP_SERVER_ALLOWED_HOSTS", "[" * 1000, "server.allowed-hosts", "[" * 1000),
    ("LOOP_KEYS", "[]", "keys", []),
])
def test_a_variable_overrides_one_key(name: str, text: str, key: str, value: Any) -> None:
    """Its name is the key's path; lists and mappings are written as in YAML."""
    layer = read_environment({name: text})
    assert layer.values == {tuple(key.split(".")): (value, name)}
    assert layer.problems == []


@pytest.mark.parametrize(("name", "rule"), [
    ("LOOP_SERVER_PROT", "is a variable that names no key; did you mean LOOP_SERVER_PORT?"),
    ("LOOP_PORT", "is a variable that names no key"),
    ("LOOP_COLOUR", "is a variable that names no key"),
    ("LOOP_SERVER", "is a variable that names no key"),
])
def test_a_variable_without_a_key_is_a_problem(name: str, rule: str) -> None:
    """A misspelt variable would otherwise change nothing without a word."""
    [problem] = read_environment({name: "1"}).problems
    assert (problem.source, problem.path) == (name, "")
    assert problem.rule.startswith(rule)


@pytest.mark.parametrize("name", [
    "LOOP_CONFIG", "LOOP_ENGINE_HOME", "LOOP_TEST_ENGINE", "PATH", "LOOPX", "loop_port"])
def test_other_variables_are_not_looked_at(name: str) -> None:
    """Only LOOP_ variables are the gateway's, and three kinds of those are no settings."""
    assert read_environment({name: "1"}) == Layer()


def test_the_layer_on_top_wins(path: Path, tmp_path: Path) -> None:
    """Its values replace those of the same key only, and no problem is lost."""
    below = layer_of(path, "server: {port: 1, threads: 1}\nx: 1")
    top = tmp_path / "top.yml"
    below.update(layer_of(top, "server: {port: 2}\ny: 1"))
    assert below.values == {
        ("server", "port"): (2, str(top)), ("server", "threads"): (1, str(path))}
    assert [problem.path for problem in below.problems] == ["x", "y"]
