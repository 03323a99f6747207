"""Keys: known by their hashes, compared all alike, worth nothing after their time."""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta, timezone
from fnmatch import fnmatchcase

import pytest

from app import keys
from app.call import Priority
from app.keys import ANYONE, NOBODY, KeyRing, Scope, hash_of, new_key
from app.settings import KeySettings

NOON = datetime(2026, 10, 3, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)


def ring(*settings: KeySettings) -> KeyRing:
    """A ring of these keys, whose globs are compared letter by letter."""
    return KeyRing(settings, matching=lambda globs: lambda model: any(
        fnmatchcase(model, glob) for glob in globs))


def key(name: str, secret: str, **more: object) -> KeySettings:
    """The entry of a key."""
    return KeySettings(name, hash_of(secret), **more)  # type: ignore[arg-type]


def test_a_key_is_known_by_its_hash() -> None:
    """SHA-256 of its bytes: those of UTF-8 where it is no ASCII."""
    assert hash_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    found = ring(key("a", "abc"), key("ü", "schlüssel")).holder("schlüssel".encode(), NOON)
    assert found is not None and found.name == "ü"


@pytest.mark.parametrize("presented", [
    b"", b"ab", b"abcd", b"ABC", b" abc", b"abc\n", b"abc\0", "äbc".encode("latin-1"),
    b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", b"x" * 100_000])
def test_nothing_else_is_the_key(presented: bytes) -> None:
    """No part of it, nothing longer, no other case, and not its hash."""
    assert ring(key("a", "abc")).holder(presented, NOON) is None


def test_every_key_is_compared_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In constant time, all of them, whichever it is: the time tells nothing."""
    compared: list[bytes] = []

    def digests(a: bytes, b: bytes) -> bool:
        compared.append(a)
        return compare(a, b)

    compare = hmac.compare_digest
    monkeypatch.setattr(keys.hmac, "compare_digest", digests)
    many = ring(*(key(f"k{n}", f"s{n}") for n in range(5)))
    for presented in (b"s0", b"s4", b"nobody's"):
        compared.clear()
        many.holder(presented, NOON)
        assert len(set(compared)) == 5


@pytest.mark.parametrize(("left", "valid"), [
    (-SECOND, False), (0 * SECOND, False), (SECOND, True)])
def test_a_key_ends_when_its_time_has_come(left: timedelta, valid: bool) -> None:
    """At that moment it is as unknown as any other."""
    found = ring(key("a", "abc", expires=NOON + left)).holder(b"abc", NOON)
    assert (found is not None) == valid


def test_an_entry_says_what_its_holder_may_do() -> None:
    """Scopes, models, limits and priority arrive at the principal."""
    found = ring(key(
        "a", "abc", models=("org/*",), scopes=("admin", "metrics"), rate="5/minute", concurrency=3,
        max_priority="LOW")).holder(b"abc", NOON)
    assert found is not None
    assert (found.name, found.scopes) == ("a", {Scope.ADMIN, Scope.METRICS})
    assert (found.rate, found.concurrency, found.max_priority) == ("5/minute", 3, Priority.LOW)
    assert (found.every_model, found.allows("org/x"), found.allows("x")) == (False, True, False)


def test_a_bare_entry_is_for_calls_of_every_model() -> None:
    """Neither admin nor metrics, no limits, no end."""
    found = ring(key("a", "abc")).holder(b"abc", NOON)
    assert found is not None and found.every_model and found.scopes == {Scope.INFER}
    assert (found.rate, found.concurrency, found.max_priority) == (None, None, Priority.HIGH)


def test_without_keys_everyone_may_do_everything_and_nobody_nothing() -> None:
    """The two principals that have no key."""
    assert not ring() and ring(key("a", "abc"))
    assert ANYONE.scopes == set(Scope) and ANYONE.allows("m") and ANYONE.every_model
    assert not NOBODY.scopes and not NOBODY.allows("m") and not NOBODY.every_model


def test_a_new_key_cannot_be_guessed() -> None:
    """256 bits, other ones each time, in characters that need no quoting."""
    made = {new_key() for _ in range(100)}
    assert len(made) == 100
    for each in made:
        assert each.startswith("loop-") and len(each) == 5 + 43
        assert each.replace("-", "").replace("_", "").isalnum() and each.isascii()


def test_neither_key_nor_hash_is_shown() -> None:
    """A ring, a principal or an entry in a log line gives nothing away."""
    entry = key("a", "abc")
    shown = f"{entry} {ring(entry)._keys} {ring(entry).holder(b'abc', NOON)}"
    assert "abc" not in shown and hash_of("abc")[:8] not in shown
    assert repr(bytes.fromhex(hash_of("abc")))[2:8] not in shown
