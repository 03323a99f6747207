"""Model names: which spellings are the same."""

from __future__ import annotations

import pytest

from app.catalog.names import directory_of, normal, require_usable, tagged
from app.catalog.problems import BadName

TAGGED = {
    "foo": "foo:latest",
    "foo:latest": "foo:latest",
    "foo:1b": "foo:1b",
    "Foo": "Foo:latest",
    "org/x": "org/x:latest",
    "org/x:Q4_K_M": "org/x:Q4_K_M",
    "hf.co/a/b:Q4_K_M": "hf.co/a/b:Q4_K_M",
    "host:5000/a": "host:5000/a:latest",
    "host:5000/a:1b": "host:5000/a:1b",
    "a//b": "a//b:latest",
    "foo:": "foo:",
    "": ":latest",
}


@pytest.mark.parametrize(("name", "expected"), TAGGED.items())
def test_a_name_without_a_tag_gets_latest(name: str, expected: str) -> None:
    """A colon before the last slash belongs to a host; the name's own spelling stays."""
    assert tagged(name) == expected


@pytest.mark.parametrize("spellings", [
    ["foo", "FOO", "Foo", "foo:latest", "FOO:Latest"],
    ["org/Model:Q4_K_M", "ORG/model:q4_k_m"],
    ["host:5000/a", "HOST:5000/A:latest"],
])
def test_spellings_of_one_model_are_equal(spellings: list[str]) -> None:
    """Case and the tag latest make no difference."""
    assert len({normal(spelling) for spelling in spellings}) == 1


@pytest.mark.parametrize(("first", "second"), [
    ("foo", "foo:1b"), ("foo:1b", "foo:2b"), ("foo", "org/foo"), ("a/b", "a//b"),
    ("foo", "foo:"), ("hf.co/a/b", "a/b"), ("host:5000/a", "host/a"), ("foo", " foo")])
def test_different_models_stay_different(first: str, second: str) -> None:
    """No tag is guessed, nothing is trimmed."""
    assert normal(first) != normal(second)


@pytest.mark.parametrize("name", [
    "foo", "foo:1b", "org/x:Q4_K_M", "hf.co/a/b:Q4_K_M", "host:5000/a:1b", "a@b", "mit Leerzeichen",
    "größe:Ä", "模型", "a%20b", "x" * 200, "a.b-c_d:e.f", "-rf", "~", "a--b"])
def test_usable_names(name: str) -> None:
    """Their directory is one right below the models."""
    assert require_usable(name) == name
    assert "/" not in directory_of(name)


@pytest.mark.parametrize(("name", "rule"), [
    ("", "no characters"), ("  ", "no characters"), (" a", "cannot be seen"),
    ("a\n", "cannot be seen"), ("a\0b", "cannot be seen"), ("a\udcff", "cannot be seen"),
    ("a\u200bb", "cannot be seen"), ("x" * 201, "longer than 200 bytes"),
    ("é" * 101, "longer than 200 bytes"), ("..", "begins with a dot"), (".", "begins with a dot"),
    ("a/../b", "begins with a dot"), ("/a", "is empty"), ("a/", "is empty"), ("a//b", "is empty"),
    ("a:", "is empty"), (":b", "is empty"), (".a", "begins with a dot"), ("a:.b", "with a dot"),
    ("a:b:c", "more than one tag")])
def test_unusable_names(name: str, rule: str) -> None:
    """The sentence has the rule, and can be printed whatever the name is."""
    with pytest.raises(BadName, match=rule) as caught:
        require_usable(name)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 250
