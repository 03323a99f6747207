"""What is wrong with a configuration is told at once, in full, without secrets or side effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.config import ConfigError, load

SECRET = "sk-0123456789"


def problems_of(path: Path, text: str, **variables: str) -> ConfigError:
    """The error that loading a file of this content raises."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        load({"LOOP_CONFIG": str(path), **variables})
    return raised.value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file of a test goes."""
    return tmp_path / "gateway.yml"


ALL_WRONG = """
server: {port: http, threads: 0, colour: red}
loop:
  read-timeout: 5
  read_timeout: 6s
  queue: {size: -1}
  engines:
  - url: http://127.0.0.1:8080
  - models: [a]
    slots: many
    api-kye: x
  - url: http://127.0.0.1:8080/
    models: []
  - 5
"""


def test_all_problems_are_told_at_once(path: Path) -> None:
    """Each has its file or variable, key path, value and rule; one does not hide the next."""
    error = problems_of(path, ALL_WRONG, LOOP_LOOP_KEEP_ALIVE="5", LOOP_LOPP="1")
    duration = "must be a duration above zero with its unit, such as 300ms, 2s, 5m or 1h"
    assert sorted(str(error).splitlines()[1:]) == sorted([
        f"  {path}: server.port: (not shown) must be a whole number from 1 to 65535",
        f"  {path}: server.threads: 0 must be a whole number from 1 to 10000",
        f"  {path}: server.colour: is no key of the configuration",
        f"  {path}: loop.read-timeout: 5 {duration}",
        f"  {path}: loop.read_timeout: is given twice; keep one spelling",
        f"  {path}: loop.queue.size: -1 must be a whole number from 0 to 100000",
        f"  {path}: loop.engines[0].models: is missing: which models does the engine serve? "
        "Such as models: [org/name:tag]",
        f"  {path}: loop.engines[1].url: is missing: where does the engine listen, "
        "such as url: http://127.0.0.1:8080? Or what starts it, such as command: builtin?",
        f"  {path}: loop.engines[1].slots: (not shown) must be a whole number from 1 to 10000",
        f"  {path}: loop.engines[1].api-kye: is no key of the configuration; "
        "did you mean api-key?",
        f"  {path}: loop.engines[2].models: [] must name at least one",
        f"  {path}: loop.engines[2].url: 'http://127.0.0.1:8080' is the url of loop.engines[0] "
        "too; put their models into one entry",
        f"  {path}: loop.engines[3]: (not shown) must be a mapping with url or command, and models",
        f"  LOOP_LOOP_KEEP_ALIVE: loop.keep-alive: '5' {duration}",
        "  LOOP_LOPP: is a variable that names no key",
    ])
    assert str(error).startswith("the configuration has 15 problems:\n")
    assert len(error.problems) == 15


def test_the_problems_of_all_files_are_told(tmp_path: Path) -> None:
    """A broken file does not hide what is wrong in the next one."""
    first, second = tmp_path / "1.yml", tmp_path / "2.yml"
    first.write_text("server: [")
    second.write_text("server: {port: 0}")
    with pytest.raises(ConfigError) as raised:
        load({"LOOP_CONFIG": f"{first}:/no/such.yml:{second}"})
    assert [problem.source for problem in raised.value.problems] == [
        str(first), "/no/such.yml", str(second)]


def test_one_problem_is_one(path: Path) -> None:
    """The text starts with how many there are."""
    assert str(problems_of(path, "server: {port: 0}")) == (
        "the configuration has a problem:\n"
        f"  {path}: server.port: 0 must be a whole number from 1 to 65535")


@pytest.mark.parametrize(("text", "where"), [
    ("server: {address: null}", "server.address: 'null' must be a text"),
    ("loop: {home: null}", "loop.home: 'null' must be a text"),
    ("loop: {engines: [{command: [llama-server], models: [m]}]}",
     "loop.engines[0].command: a list must hold \"{port}\""),
    ("keys: a", "keys: (not shown) must be a list"),
    ("keys: [a]", "keys[0]: (not shown) must be a mapping with name and sha256"),
    ("loop: {engines: &all [*all]}", "loop.engines"),
    ("loop: {aliases: &all {x: *all}}", "loop.aliases"),
])
def test_a_problem_has_its_place(path: Path, text: str, where: str) -> None:
    """The key path leads to the value that breaks the rule."""
    [line] = str(problems_of(path, text)).splitlines()[1:]
    assert line.startswith(f"  {path}: {where}")


ENGINE = f"url: 'http://127.0.0.1:1', models: [m], api-key: {SECRET}"


@pytest.mark.parametrize("text", [
    f"loop: {{engines: [{{{ENGINE}, slots: 0}}]}}",
    f"loop: {{engines: [{{{ENGINE} {SECRET}}}]}}",
    f"loop: {{engines: [{{{ENGINE}, api_key: {SECRET}}}]}}",
    f"loop: {{engines: [{{{ENGINE.replace('api-key', 'api_key')}ü}}]}}",
    f"loop: {{engines: [{{{ENGINE.replace('api-key', 'api-kye')}}}]}}",
    f"loop: {{engines: [{{url: 5, models: [m], api-key: [{SECRET}]}}]}}",
    f"loop: {{engines: {{{ENGINE}}}}}",
    f"loop: {{engines: ['api-key:{SECRET}']}}",
    f"loop: [{{engines: [{{api-key: {SECRET}}}]}}]",
    f"loop: {{engines: [{{url: 'http://127.0.0.1:1', api-key: \"{SECRET}, models: [m]}}]}}",
    f"loop:\n  engines:\n  - api-key: {SECRET}: x\n    url: a",
    f"loop:\n  engines:\n  - api-key: {SECRET}\n    api-key: {SECRET}",
    f"loop:\n  engines:\n  - url: http://127.0.0.1:1\n   api-key: {SECRET}",
    f"keys: [{SECRET}]",
    f"keys: [{{key: {SECRET}}}]",
    f"keys: [{{name: a, sha256: {SECRET}}}]",
    f"keys: [{{name: a, sha256: [{SECRET}]}}]",
    f"keys: [{{name: a, {SECRET}: sha256}}]",
    f"keys: [{{name: a, sha256: {SECRET}, rate: {SECRET}, expires: {SECRET}, scopes: {SECRET}}}]",
    f"keys: {{alice: {SECRET}}}",
    f"keys:\n- name: a\n  sha256: {SECRET}: x",
    f"server: {{rate-storage: 'redis://:{SECRET}@host:x'}}",
    f"server: {{rate-storage: 'redis://host:x?password={SECRET}'}}",
])
def test_a_key_is_never_shown(path: Path, text: str) -> None:
    """Wherever a secret stands and whatever is wrong around it, no problem repeats it."""
    assert SECRET not in str(problems_of(path, text))


@pytest.mark.parametrize(("name", "text"), [
    ("LOOP_LOOP_ENGINES", f"[{{{ENGINE}, slots: 0}}]"),
    ("LOOP_LOOP_ENGINES", f"[{{{ENGINE}}}"),
    ("LOOP_LOOP_ENGINES", f"{{{ENGINE}}}"),
    ("LOOP_KEYS", SECRET),
])
def test_a_key_in_a_variable_is_never_shown(path: Path, name: str, text: str) -> None:
    """The same holds for the environment."""
    assert SECRET not in str(problems_of(path, "", **{name: text}))


def test_a_key_put_in_by_a_variable_is_never_shown(path: Path) -> None:
    """Nor is the value that an engine's key takes from elsewhere."""
    engine = "{url: 'http://127.0.0.1:1', models: [m], api-key: 'x ${KEY}'}"
    assert SECRET not in str(problems_of(path, f"loop: {{engines: [{engine}]}}", KEY=SECRET))


def test_the_settings_do_not_show_keys(path: Path) -> None:
    """Settings may be printed or logged."""
    path.write_text(f"loop: {{engines: [{{{ENGINE}}}]}}", encoding="utf-8")
    settings = load({"LOOP_CONFIG": str(path)})
    assert settings.loop.engines[0].api_key == SECRET
    assert SECRET not in repr(settings) and SECRET not in str(settings)


def test_checking_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No directory is made, no file written: neither for a good nor for a bad configuration."""
    home = tmp_path / "user"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    good, bad = tmp_path / "good.yml", tmp_path / "bad.yml"
    good.write_text("loop: {home: ~/registry}")
    bad.write_text("loop: {home: ~/registry}\nserver: {port: 0}")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    load({"LOOP_CONFIG": str(good)})
    with pytest.raises(ConfigError):
        load({"LOOP_CONFIG": str(bad)})
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
