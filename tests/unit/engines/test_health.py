"""Whether an engine can be relied on."""

from __future__ import annotations

import pytest

from app.engines.health import Health
from tests.fakes.visits import HandClock


SILENCE = 10.0  # s


@pytest.fixture
def health(clock: HandClock) -> Health:
    """An engine with two strikes."""
    return Health(2, clock)


def test_a_new_engine_is_healthy(health: Health) -> None:
    """Until something speaks against it."""
    assert (health.suspect, health.usable, health.strikes, health.error) == (False, True, 0, None)


def test_one_refusal_makes_it_suspect(health: Health) -> None:
    """There is nobody."""
    health.refused("nobody there")
    assert (health.suspect, health.usable, health.error) == (True, False, "nobody there")


def later(health: Health, clock: HandClock) -> bool:
    """A silence that begins now."""
    clock.now += SILENCE
    return health.silent("late", SILENCE)


def test_silences_in_a_row_make_it_suspect(health: Health, clock: HandClock) -> None:
    """One alone does not; a good answer between two ends the count."""
    assert later(health, clock) is False
    health.answered()
    assert later(health, clock) is False and not health.suspect
    assert later(health, clock) is True
    assert (health.suspect, health.strikes, health.error) == (True, 2, "late")


@pytest.mark.parametrize("sent", [Health.hear, Health.answered])
def test_a_call_that_is_slow_beside_others_is_no_strike(
        health: Health, clock: HandClock, sent: object) -> None:
    """Whatever the engine sent in that time, on whatever call, speaks for it."""
    clock.now += SILENCE / 2
    sent(health)  # type: ignore[operator]
    clock.now += SILENCE / 2
    assert health.silent("late", SILENCE) is False
    assert health.strikes == 0


def test_calls_that_fall_silent_together_are_one_strike(health: Health, clock: HandClock) -> None:
    """They say the same thing."""
    clock.now += SILENCE
    for _ in range(5):
        assert health.silent("late", SILENCE) is False
    assert health.strikes == 1


def test_a_good_probe_forgives_failed_probes_only(health: Health, clock: HandClock) -> None:
    """An engine that hangs at its work may go on answering probes."""
    later(health, clock)
    health.probed()
    assert health.strikes == 1
    health.answered()
    health.missed("a probe")
    health.probed()
    assert health.strikes == 0
    health.missed("a probe")
    assert later(health, clock) is True


@pytest.mark.parametrize("good", [Health.answered, Health.probed, Health.reset])
def test_whatever_is_good_ends_suspicion(health: Health, clock: HandClock, good: object) -> None:
    """An answer, a probe, or a new process; the pauses begin anew."""
    health.refused("no")
    health.refused("no")
    good(health)  # type: ignore[operator]
    assert (health.suspect, health.strikes) == (False, 0)
    health.refused("no")
    clock.now += 1.0
    assert health.usable


def test_trials_come_after_growing_pauses(health: Health, clock: HandClock) -> None:
    """1 s, 2 s, … up to 30; while one is on trial the others keep away."""
    health.refused("no")
    for pause in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0):
        clock.now += pause - 0.01
        assert not health.usable
        clock.now += 0.01
        assert health.usable
        health.begin_trial()
        assert not health.usable and health.suspect


def test_no_trial_begins_with_a_healthy_engine(health: Health) -> None:
    """It stays healthy."""
    health.begin_trial()
    assert health.usable and not health.suspect
