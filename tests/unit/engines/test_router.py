"""Which engines serve a model, by the names and globs of the configuration."""

from __future__ import annotations

import pytest

from app.engines.router import Served, candidates, configured_name

MATCHES = [
    ("org/Model:Q4", "org/Model:Q4", True),
    ("org/Model:Q4", "ORG/model:q4", True),
    ("ORG/MODEL:Q4", "org/model:q4", True),
    ("org/Model:Q4", "org/Model:Q8", False),
    ("org/Model:Q4", "org/Model", False),
    ("org/Model:Q4", "Model:Q4", False),
    ("foo", "foo", True),
    ("foo", "foo:latest", True),
    ("foo", "FOO:Latest", True),
    ("foo", "foo:1b", False),
    ("foo", "foobar", False),
    ("foo", "org/foo", False),
    ("foo:latest", "foo", True),
    ("foo:latest", "foo:latest", True),
    ("foo:latest", "foo:1b", False),
    ("*", "anything/at:all", True),
    ("*", "foo", True),
    ("org/*", "org/Model:Q4", True),
    ("org/*", "ORG/Model:Q4", True),
    ("ORG/*", "org/model", True),
    ("org/*", "organic/Model", False),
    ("*:F32", "org/Model:F32", True),
    ("*:F32", "org/Model:f32", True),
    ("*:F32", "org/Model", False),
    ("*:latest", "org/Model", True),
    ("*-coder", "tiny-coder", True),
    ("*-coder", "tiny-coder:latest", True),
    ("*-coder", "tiny-coder:7b", False),
    ("foo*", "foo:1b", True),
    ("f?o", "fxo", True),
    ("f?o", "fo", False),
    ("f[ao]o", "fao", True),
    ("f[!ao]o", "fao", False),
    ("a.c", "abc", False),
    ("a+", "aa", False),
    ("(a|b)", "a", False),
    ("foo", "foo\n", False),
    ("*", "two\nlines", True),
    ("host:5000/a", "host:5000/a:latest", True),
]


@pytest.mark.parametrize(("pattern", "name", "expected"), MATCHES)
def test_a_pattern_fits_a_name_or_not(pattern: str, name: str, expected: bool) -> None:
    """Case makes no difference, nor does a tag latest that is left out."""
    assert Served((pattern,)).matches(name) is expected


def test_one_pattern_that_fits_is_enough() -> None:
    """An engine may serve several models."""
    served = Served(("a", "b/*", "c:1"))
    assert [served.matches(name) for name in ("a", "b/x", "c:1", "c", "d")] == [
        True, True, True, False, False]


ENGINES = [Served(("a", "shared")), Served(("b",)), Served(("shared", "*:F32")), Served(("sh*",))]


@pytest.mark.parametrize(("name", "positions"), [
    ("a", [0]), ("b", [1]), ("x:F32", [2]), ("shared", [0, 2, 3]), ("Shared:latest", [0, 2, 3]),
    ("ship", [3]), ("nope", []), ("", [])])
def test_candidates_come_in_the_order_of_the_configuration(
        name: str, positions: list[int]) -> None:
    """All engines that serve the model, none that does not."""
    assert candidates(name, ENGINES) == positions


def test_without_engines_there_are_no_candidates() -> None:
    """A gateway may have a registry only."""
    assert candidates("a", []) == []


@pytest.mark.parametrize(("name", "expected"), [
    ("a", "a"), ("A", "a"), ("a:latest", "a"), ("SHARED", "shared"), ("x:f32", "x:f32"),
    ("Nope", "Nope"), ("ship", "ship")])
def test_a_name_gets_the_spelling_of_the_configuration(name: str, expected: str) -> None:
    """Where a name stands there as it is; what only a glob fits stays as asked."""
    assert configured_name(name, ENGINES) == expected
