"""No message about a configuration repeats what can be a secret, wherever one has got to."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.arguments import Parser
from app.cli import main
from app.config import load, shown
from app.config.schema import ENGINE, KEY, ROOT, Section
from app.launcher import serve

SECRET = "sk-Marker-4f2a"
Place = tuple[str, ...]


def leaves(section: Section, path: Place = ()) -> Iterator[Place]:
    """The paths of all keys, those of sections too."""
    for name, inner in section.items():
        yield (*path, name)
        if isinstance(inner, Mapping):
            yield from leaves(inner, (*path, name))


def nested(place: Place, value: Any) -> Any:
    """A configuration that has this value at this place and nothing else."""
    for name in reversed(place):
        value = {name: value}
    return value


def engine(**keys: Any) -> Any:
    """A configuration of one engine."""
    return {"loop": {"engines": [{"url": "http://127.0.0.1:1", "models": ["m"], **keys}]}}


def key(**fields: Any) -> Any:
    """A configuration of one key."""
    return {"keys": [{"name": "a", "sha256": "5" * 64, **fields}]}


# What stands there by mistake: a text, more than one, what a text is put in of, a wrong address.
MISTAKES = [SECRET, [SECRET], {"a": SECRET}, {SECRET: 1}, f"${{{SECRET}}}",
            f"5s {SECRET}", f"http://u:{SECRET}@h:1", f"http://h:1/?k={SECRET}",
            f"http://h:1/{SECRET}?", f"x --api-key {SECRET} {{port}}"]
PLACES = {".".join(place): lambda value, place=place: nested(place, value)
          for place in [(), ("server", "nope"), ("loop", "queue", "nope"), ("nope",),
                        ("api-key",), *leaves(ROOT)]}
PLACES |= {f"engine {name}": lambda value, name=name: engine(**{name: value})
           for name in [*ENGINE, "nope", "apikey", "api-kye"]}
PLACES |= {f"key {name}": lambda value, name=name: key(**{name: value})
           for name in [*KEY, "nope", "token", "key"]}
# Texts that are no YAML, or none that says what was meant; the first part is what is before it.
BROKEN = [
    f"*{SECRET}", f"!{SECRET}", f"!{SECRET} x", f"!<{SECRET}> x", f"!{SECRET}!x y",
    f"&{SECRET} a\n    url: &{SECRET} b", f"%{SECRET}", f"@{SECRET}", f"`{SECRET}", f"{SECRET}: x",
    f"{SECRET}: x: \"y", f"\"{SECRET}", f"'{SECRET}", f"\"\\q{SECRET}\"", f"[{SECRET}",
    f"{{{SECRET}", f"|{SECRET}", f"{SECRET}\n  {SECRET}: x\n {SECRET}", f"\t{SECRET}: \tx",
    f"!!int {SECRET}", f"!!float {SECRET}", f"!!bool {SECRET}", f"!!timestamp {SECRET}",
    f"!!binary {SECRET}é", f"!!map {SECRET}", f"!!set {SECRET}", f"!!omap [{SECRET}]",
    f"!!python/name:{SECRET} x", f"{SECRET}\n    api-key: {SECRET}", f"{SECRET}\0",
    f"a\n    {SECRET}: 1\n    {SECRET}: 2", f"a\n    api-key:{SECRET}", f"a\n--- {SECRET}"]
WHOLE = [SECRET, f"- {SECRET}", f"{{{SECRET}", f"{SECRET}: 1", f"api-key:{SECRET}", f"*{SECRET}",
         f"# x\n{SECRET}\n", f"server: {{port: 1, api-key:{SECRET}}}"]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
         ) -> Any:
    """What check-config says of a file's content and of variables, with its options.

    The defaults are not read, as they hold no secret and take a while.
    """
    file = tmp_path / "gateway.yml"
    monkeypatch.setattr(sys.modules[load.__module__], "DEFAULTS", tmp_path / "none")
    monkeypatch.setenv("LOOP_CONFIG", str(file))

    def check(text: str, *options: str, **variables: str) -> str:
        file.write_bytes(text.encode())
        with monkeypatch.context() as patched:
            for name, value in variables.items():
                patched.setenv(name, value)
            assert main(["check-config", *options]) in (0, 1)
        out, err = capsys.readouterr()
        return out + err

    return check


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_at_the_wrong_place(told: Any, place: str) -> None:
    """At every key, known or not, whatever form it has there."""
    for mistake in MISTAKES:
        said = told(yaml.safe_dump(PLACES[place](mistake)))
        assert SECRET not in said and "the configuration" in said, mistake


@pytest.mark.parametrize("text", BROKEN)
def test_a_secret_in_a_text_that_cannot_be_read(told: Any, text: str) -> None:
    """In a file, and in a variable, which are refused."""
    lines = f"loop:\n  engines:\n  - models: [m]\n    url: http://h\n    api-key: {text}\n"
    lined = text.replace("\n", " ").replace("\0", "")
    for said in (told(lines), told("", LOOP_LOOP_ENGINES=f"[{{api-key: {lined}, url: 5}}]"),
                 told("", LOOP_KEYS=f"[{{name: {lined}}}]")):
        assert SECRET.lower() not in said.lower() and "problem" in said


@pytest.mark.parametrize("text", WHOLE)
def test_a_secret_that_is_all_there_is(told: Any, text: str) -> None:
    """Such as a file of a key where a configuration was meant."""
    for options, start in ([], "the configuration has"), (["--json"], '{"good":false'):
        said = told(text, *options)
        assert SECRET not in said and said.startswith(start)


@pytest.mark.parametrize("place", [".".join(place) for place in leaves(ROOT)] + ["nope", "key"])
def test_a_secret_in_a_variable(told: Any, place: str) -> None:
    """Of any key, and of none."""
    name = "LOOP_" + place.replace(".", "_").replace("-", "_").upper()
    for value in (SECRET, f"[{SECRET}]", f"{{{SECRET}: 1}}", f"[{{api-key: {SECRET}"):
        assert SECRET not in told("", **{name: value})


@pytest.mark.parametrize(("value", "path", "text"), [
    (0, "server.port", "0"), (80800, "server.port", "80800"), ("0", "server.port", "'0'"),
    (-1.5, "a.b", "-1.5"), ("10sec", "a.b", "'10sec'"), ("64 MB", "a.b", "'64 MB'"),
    (True, "a.b", "True"), ([], "a.b", "[]"), ("", "a.b", "''"), ("null", "a.b", "'null'"),
    ("0.0.0.0", "server.address", "'0.0.0.0'"), ("http://h:80", "a.url", "'http://h:80'"),
    ([1], "a.b", "a list"), ({1: 2}, "a.b", "a mapping"),
    (12345678, "loop.engines[0].api-key", "(not shown)"), (5, "keys[0].sha256", "(not shown)"),
    (12345678, "keys[0]", "(not shown)"), (12345678, "", "(not shown)"),
    (10**12, "a.b", "(not shown)"), (float("nan"), "a.b", "(not shown)"),
    ("word", "a.b", "(not shown)"), (b"5", "a.b", "(not shown)"), ("1" * 13, "a", "(not shown)"),
    ("http://h/path", "a.url", "(not shown)"), (Path("/x"), "keys-file", "(not shown)"),
])
def test_what_is_shown(value: Any, path: str, text: str) -> None:
    """Numbers, counts with a unit, addresses without more; where a key may stand not even these."""
    assert shown.value(value, path) == text


@pytest.mark.parametrize(("text", "reason"), [
    ("a: [", "expected the node content, but found '<stream end>' (line 1, column 5)"),
    ("a: [b c: d: e]", "expected ',' or ']', but got ':' (line 1, column 11)"),
    ("a: b: c", "mapping values are not allowed here (line 1, column 5)"),
    ("a:\n\tb: c", "found character '\\t' that cannot start any token (line 2, column 1)"),
    (f"a: *{SECRET}", "found undefined alias (line 1, column 4)"),
    (f"a: !{SECRET} b", "could not determine a constructor for the tag (line 1, column 4)"),
    (f"a: 1\n{SECRET}: 2\n{SECRET}: 3", "a key is repeated (line 3, column 1)"),
    ("nope: 1\nnope: 2", "the key nope is repeated (line 2, column 1)"),
    (f"a: !!int {SECRET}", "a value is none of the type that it is written as"),
    ("a: \x01", "it has a character that must not be there (character 4)"),
    ("[" * 5000, "it is too deep")])
def test_why_it_is_no_yaml(told: Any, text: str, reason: str) -> None:
    """The kind of error and its place, with YAML's own signs only."""
    assert told(text).endswith(f"is no valid YAML: {reason}\n")


@pytest.mark.parametrize("text", ["0x" + "f" * 9000, "-0x" + "f" * 9000])
@pytest.mark.parametrize("place", ["server.port", "server.max-body", "engine command", "key name"])
def test_a_number_without_end(told: Any, place: str, text: str) -> None:
    """Is refused like any other, though Python writes none of that length."""
    body = yaml.safe_dump(PLACES[place]([7] if "command" in place else 7))
    said = told(body.replace("7", text))
    assert "(not shown)" in said or "a list" in said


@pytest.mark.parametrize("words", [
    [SECRET], ["check-config", "--api-key", SECRET], ["check-config", f"--json={SECRET}"],
    ["check-config", f"--{SECRET}"], ["rm"], ["keys", SECRET], ["check-config", SECRET]])
def test_a_secret_on_the_command_line(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    """Of the commands and of what serves: what is wrong is told, and not the word."""
    for run in (main, serve.main):
        with pytest.raises(SystemExit) as ended:
            run(words)
        assert ended.value.code == 2
        err = capsys.readouterr().err
        assert SECRET not in err and "error: " in err


def test_a_choice_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """What there is to choose from, and which option could be meant, is no secret."""
    parser = Parser()
    parser.add_argument("--form", choices=["json", "text"])
    parser.add_argument("--format", type=int)
    for words, text in ((["--form", SECRET], "choose from"), ([f"--fo={SECRET}"], "could match"),
                        (["--format", SECRET], "argument --format: invalid int value")):
        with pytest.raises(SystemExit):
            parser.parse_args(words)
        err = capsys.readouterr().err
        assert text in err and SECRET not in err, json.dumps(err)
