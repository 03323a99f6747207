"""What wakes a thread that waits for an engine when its client leaves."""

from __future__ import annotations

import socket

import pytest

from app.engines.hangup import Departure


@pytest.fixture
def woken() -> list[str]:
    """Who was woken, in order."""
    return []


def test_whoever_is_attached_is_woken(woken: list[str]) -> None:
    """The one attached last, and the departure is known by then."""
    departure = Departure(None)
    departure.attach(lambda: woken.append("first"))
    departure.attach(lambda: woken.append(f"second, {departure.gone}"))
    assert not woken and not departure.gone
    departure.happen()
    assert woken == ["second, True"]


def test_a_client_that_has_left_wakes_at_once(woken: list[str]) -> None:
    """Whoever comes too late need not wait in vain."""
    departure = Departure(None)
    departure.happen()
    departure.attach(lambda: woken.append("late"))
    assert woken == ["late"]


def test_nobody_is_woken_after_it_was_detached(woken: list[str]) -> None:
    """What it would wake may be another call's by then."""
    departure = Departure(None)
    departure.attach(lambda: woken.append("detached"))
    departure.detach()
    departure.happen()
    assert departure.gone and not woken


@pytest.mark.parametrize("closed", [False, True])
def test_an_engines_connection_is_shut_down(closed: bool) -> None:
    """Whoever reads from it reads its end; one that is closed already is no fault."""
    departure = Departure(None)
    ours, engines = socket.socketpair()
    with ours, engines:
        ours.settimeout(20.0)
        departure.attach_socket(ours)
        if closed:
            ours.close()
        departure.happen()
        engines.settimeout(20.0)
        assert engines.recv(1) == b""
