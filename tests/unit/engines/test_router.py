"""Which engines serve a model, by the names and globs of the configuration."""

from __future__ import annotations

import pytest

from app.engines.router import (
    Candidate, Served, affinity, best, candidates, configured_name,
)

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


def able(address: str = "http://a", usable: bool = True, loaded: bool = True, free: bool = True,
         running: int = 0) -> Candidate:
    """An engine that can serve, as good as can be unless said otherwise."""
    return Candidate(address, usable, loaded, free, running)


@pytest.mark.parametrize(("better", "worse", "conversation"), [
    *((better, worse, conversation) for conversation in (None, "c") for better, worse in (
        (able(loaded=False, free=False, running=9), able(usable=False)),
        (able(free=False, running=9), able(loaded=False)),
        (able(running=9), able(free=False)))),
    (able(running=1), able(running=2), None),
])
def test_the_better_engine_is_chosen(
        better: Candidate, worse: Candidate, conversation: str | None) -> None:
    """Usable, loaded, with a free slot; without a conversation also by running calls."""
    assert best([worse, better, worse], conversation) == 1
    assert best([better, worse], conversation) == 0


def test_of_equals_the_first_is_chosen() -> None:
    """In the order of the configuration."""
    assert best([able("http://a"), able("http://b")], None) == 0


def test_a_conversation_stays_where_it_belongs() -> None:
    """However the list is ordered, and whatever runs there; others are spread evenly."""
    addresses = [f"http://e{number}" for number in range(4)]
    chosen = []
    for number in range(400):
        engines = [able(address, running=number % 3) for address in addresses]
        chosen.append(engines[best(engines, str(number))].address)
        turned = engines[::-1]
        assert turned[best(turned, str(number))].address == chosen[-1]
    counts = [chosen.count(address) for address in addresses]
    assert min(counts) > 60
    fewer = [able(address) for address in addresses[:3]]
    moved = [number for number in range(400)
             if fewer[best(fewer, str(number))].address != chosen[number]]
    assert len(moved) == counts[3]


def test_affinity_is_the_same_in_every_gateway() -> None:
    """It depends on the two texts alone, whatever is in them."""
    assert affinity("c", "http://a") == 15_220_984_016_125_294_945
    assert affinity("\ud800", "http://a") != affinity("\ud801", "http://a")
