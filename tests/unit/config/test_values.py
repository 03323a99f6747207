"""Single values: what each reader makes of YAML, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.config import values
from app.config.values import Reader, Rejected

PORT = values.integer(1, 65535)
KIND = values.one_of("llama-server", "openai")
MAYBE = values.optional(values.duration)

READ = [
    (values.command, "builtin", ("builtin",)),
    (values.command, ["builtin"], ("builtin",)),
    (values.command, ["x", "-c", 8192, "--port={port}"], ("x", "-c", "8192", "--port={port}")),
    (values.text, "two words", "two words"),
    (values.text, " padded ", " padded "),
    (values.secret, "sk-123_+/=", "sk-123_+/="),
    (values.secret, "", None),
    (values.boolean, True, True),
    (values.boolean, False, False),
    (values.boolean, "true", True),
    (values.boolean, "false", False),
    (PORT, 1, 1),
    (PORT, 65535, 65535),
    (PORT, "11434", 11434),
    (values.size, 1, 1),
    (values.size, "1024", 1024),
    (values.size, "7B", 7),
    (values.size, "1KB", 1000),
    (values.size, "1KiB", 1024),
    (values.size, "1.5KiB", 1536),
    (values.size, "64 MiB", 64 * 2**20),
    (values.size, "16GiB", 16 * 2**30),
    (values.size, "2TB", 2 * 10**12),
    (values.url, "http://127.0.0.1:8080", "http://127.0.0.1:8080"),
    (values.url, "https://host/", "https://host"),
    (values.url, "http://host/base/", "http://host/base"),
    (values.url, " http://host ", "http://host"),
    (values.url, "HTTP://host", "http://host"),
    (values.url, "http://[::1]:8080", "http://[::1]:8080"),
    (KIND, "openai", "openai"),
    (values.texts, [], ()),
    (values.texts, ["a", "b"], ("a", "b")),
    (values.some_texts, ["org/*"], ("org/*",)),
    (values.mapping, {}, {}),
    (values.mapping, {"gpt-4o": "org/name:tag"}, {"gpt-4o": "org/name:tag"}),
    (values.items, None, []),
    (values.items, [1, {}], [1, {}]),
    (MAYBE, None, None),
    (MAYBE, "2s", 2.0),
]

DURATIONS = {
    "1ms": 0.001, "300ms": 0.3, "2s": 2, "1.5s": 1.5, "5m": 300, "1h": 3600, "1h30m": 5400,
    "1m30s500ms": 90.5, "8784h": 366 * 86400,
}

REFUSED: list[tuple[Reader, str, list[Any]]] = [
    (values.text, "a text that is not blank", ["", "  ", "\t", 5, 1.5, True, None, ["a"], {}]),
    (values.secret, "printable ASCII", ["a b", "a\n", "grün", "\x7f", 5, None, ["a"]]),
    (values.boolean, "true or false", ["yes", "True", "", 1, 0, None, [True]]),
    (PORT, "a whole number from 1 to 65535",
     [0, 65536, -1, 80.0, True, None, "", "x", "-1", "1.0", " 80", "0", [80], "7" * 5000]),
    (values.duration, "a duration above zero with its unit",
     ["", "5", 5, 1.5, True, None, "0s", "-1s", "1 s", "1s ", "s", "1d", "1e3s", "infs", "nans",
      "1S", ".5s", "8785h", "9" * 400 + "h", ["1s"]]),
    (values.size, "a size of more than zero",
     [0, -1, 1.5, True, None, "", "0", "0.5B", "-1MiB", "MiB", "1mib", "1PB", "1e3", "1MiBx",
      "9" * 400, [1]]),
    (values.url, "the address of an engine",
     ["127.0.0.1:8080", "ftp://host", "http://", "http:///x", "http://host:port",
      "http://host:99999", "http://host:0", "http://[::1", "http://host?a=1", "http://host#a",
      "http://user@host", "http://user:word@host", "/v1", "", "  ", 5, None, ["http://host"]]),
    (KIND, "one of llama-server, openai", ["", "OpenAI", None, 1, ["openai"]]),
    (values.texts, "a list of texts", ["a", None, {}, 5]),
    (values.texts, "a text that is not blank", [["a", ""], [5], [None], [["a"]]]),
    (values.some_texts, "at least one", [[]]),
    (values.mapping, "a mapping of names to names", [None, [], "a", 5]),
    (values.mapping, "a text that is not blank", [{"a": 5}, {5: "a"}, {"": "a"}, {"a": None}]),
    (values.items, "a list", ["a", {}, 5, True]),
    (MAYBE, "a duration", ["", 0, False]),
    (values.command, "must be builtin, or a list", [None, "llama-server", {}, [], 5, True]),
    (values.command, "a list of texts and numbers",
     [["a", None], ["a", ["{port}"]], ["\0"], [True]]),
    (values.command, "must begin with a program", [["", "{port}"], [" ", "{port}"]]),
    (values.command, 'must hold "{port}"', [["llama-server"], ["x", "--port", 8080], ["{Port}"]]),
]


@pytest.mark.parametrize(("reader", "value", "expected"), READ)
def test_a_good_value_is_read(reader: Reader, value: Any, expected: Any) -> None:
    """Every legal spelling gives one typed value."""
    found = reader(value)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(("text", "seconds"), DURATIONS.items())
def test_a_duration_is_seconds(text: str, seconds: float) -> None:
    """Each unit, fractions, and several units one after another."""
    assert values.duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(("reader", "rule", "value"), [
    pytest.param(reader, rule, value, id=f"{rule[:20]}-{str(value)[:20]}")
    for reader, rule, bad in REFUSED for value in bad])
def test_a_bad_value_is_refused_with_its_rule(reader: Reader, rule: str, value: Any) -> None:
    """Nothing but Rejected is raised, and it says what to write instead."""
    with pytest.raises(Rejected, match=rule):
        reader(value)


@pytest.mark.parametrize(("text", "expected"), [
    ("~", "{home}"), ("~/models", "{home}/models"), ("models", "{cwd}/models"),
    ("/srv/models", "/srv/models"), ("/srv/~/x", "/srv/~/x")])
def test_a_path_is_absolute(text: str, expected: str, tmp_path: Path,
                            monkeypatch: pytest.MonkeyPatch) -> None:
    """A leading ~ is the user's home, anything relative starts at the working directory."""
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    cwd.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(cwd)
    assert values.path(text) == Path(expected.format(home=home, cwd=cwd))


@pytest.mark.parametrize(("value", "rule"), [
    ("", "not blank"), (None, "not blank"), (5, "not blank"),
    ("~no-such-user/x", "no home directory")])
def test_a_path_that_leads_nowhere_is_refused(value: Any, rule: str) -> None:
    """No text, or a user that this machine does not know."""
    with pytest.raises(Rejected, match=rule):
        values.path(value)
