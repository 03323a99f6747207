"""Whether an engine can be relied on."""

from __future__ import annotations

from collections.abc import Callable

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


def waits(health: Health, clock: HandClock, seconds: float) -> None:
    """A call begins to wait, and has not got anything after so long."""
    health.expect()
    clock.now += seconds


def later(health: Health, clock: HandClock) -> bool:
    """A silence that begins now."""
    waits(health, clock, SILENCE)
    found = health.silent("late", SILENCE)
    health.expect_no_more()
    return found


def given_up(health: Health, clock: HandClock, after: float) -> bool:
    """A call that begins to wait now, and whose client leaves before anything came."""
    waits(health, clock, after)
    found = health.given_up("nothing came", SILENCE)
    health.expect_no_more()
    return found


def test_silences_in_a_row_make_it_suspect(health: Health, clock: HandClock) -> None:
    """One alone does not; a good answer between two ends the count."""
    assert later(health, clock) is False
    health.answered()
    assert later(health, clock) is False and not health.suspect
    assert later(health, clock) is True
    assert (health.suspect, health.strikes, health.error) == (True, 2, "late")


@pytest.mark.parametrize("sent", [Health.hear, Health.answered])
def test_a_call_that_is_slow_beside_others_is_no_strike(
        health: Health, clock: HandClock, sent: Callable[[Health], None]) -> None:
    """Whatever the engine sent in that time, on whatever call, speaks for it."""
    waits(health, clock, SILENCE / 2)
    sent(health)
    clock.now += SILENCE / 2
    assert health.silent("late", SILENCE) is False
    assert health.given_up("late", SILENCE) is False
    assert health.strikes == 0


def test_calls_that_fall_silent_together_are_one_strike(health: Health, clock: HandClock) -> None:
    """They say the same thing."""
    for _ in range(5):
        health.expect()
    clock.now += SILENCE
    for _ in range(5):
        assert health.silent("late", SILENCE) is False
        assert health.given_up("late", SILENCE) is False
        health.expect_no_more()
    assert health.strikes == 1


def test_clients_that_give_up_by_turns_show_that_it_hangs(
        health: Health, clock: HandClock) -> None:
    """The silence of the engine counts, not that of one call; each strike takes a whole one."""
    for strikes in (0, 1, 1, 2):  # after 7, 14, 21 and 28 s
        assert given_up(health, clock, 7.0) is (strikes == 2)
        clock.now += 0.01  # the next client is not there at once
        assert health.strikes == strikes
    assert health.suspect and health.error == "nothing came"


def test_one_call_that_is_given_up_in_time_is_no_strike(health: Health, clock: HandClock) -> None:
    """However long before the engine spoke last, and however often: it was idle between."""
    for _ in range(5):
        clock.now += 1000.0
        assert given_up(health, clock, SILENCE - 0.1) is False
    health.hear()
    clock.now += 0.05
    assert given_up(health, clock, SILENCE - 0.01) is False
    assert (health.strikes, health.suspect, health.error) == (0, False, None)


def test_a_client_that_takes_its_time_is_no_silence(health: Health, clock: HandClock) -> None:
    """Nobody waits for the engine while what it sent cannot be passed on."""
    health.expect()
    health.expect_no_more()
    health.hear()
    clock.now += 1000.0
    assert given_up(health, clock, 1.0) is False
    assert health.strikes == 0


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
    health.probed()
    assert (health.suspect, health.strikes) == (False, 1)


@pytest.mark.parametrize("good", [Health.answered, Health.probed, Health.reset])
def test_whatever_is_good_ends_the_suspicion_of_a_refusal(
        health: Health, clock: HandClock, good: Callable[[Health], None]) -> None:
    """An answer, a probe, or a new process; the pauses begin anew."""
    health.refused("no")
    health.refused("no")
    good(health)
    assert (health.suspect, health.strikes) == (False, 0)
    health.refused("no")
    clock.now += 1.0
    assert health.usable


def test_silences_are_not_forgiven_for_probes(health: Health, clock: HandClock) -> None:
    """The engine stays suspect, and the pauses grow, until a call is answered."""
    for _ in range(2):
        later(health, clock)
    health.refused("no")
    for pause in (1.0, 2.0, 4.0):
        health.probed()
        clock.now += pause - 0.1
        health.probed()
        assert health.suspect and not health.usable
        clock.now += 0.2
        assert health.usable
        health.begin_trial()
    health.answered()
    assert (health.suspect, health.strikes) == (False, 0)


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


@pytest.mark.parametrize("fails", ["refused", "silent"])
def test_a_trial_that_fails_lengthens_the_pause_once(
        health: Health, clock: HandClock, fails: str) -> None:
    """It has its length from the trial, and begins when that ends."""
    for _ in range(2):
        later(health, clock)
    for pause in (1.0, 2.0, 4.0, 8.0, 16.0, 30.0):
        clock.now += pause - 0.01
        assert not health.usable
        clock.now += 0.01
        assert health.usable
        health.begin_trial()
        clock.now += 0.5
        if fails == "refused":
            health.refused("no")
        else:
            assert later(health, clock)


def test_no_trial_begins_with_a_healthy_engine(health: Health) -> None:
    """It stays healthy."""
    health.begin_trial()
    assert health.usable and not health.suspect
