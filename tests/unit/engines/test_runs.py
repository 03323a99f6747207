"""Which models have requests that use them, and which may have none."""

from __future__ import annotations

import pytest

from app.engines.runs import Runs
from app.errors import GatewayError, Kind


def test_requests_are_counted() -> None:
    """Those of each model by themselves, until the last has ended."""
    runs = Runs()
    with runs.of("m", 1), runs.of("m", 2), runs.of("n", 1):
        assert not runs.over("m")
    assert runs.over("m") and runs.over("n")


def test_a_model_that_may_have_none() -> None:
    """Is as unknown to new requests as one that is not there; those that use it go on."""
    runs = Runs()
    with runs.of("m", 1):
        with runs.none_of("m"), runs.none_of("m"):
            assert not runs.over("m")
            with pytest.raises(GatewayError) as caught, runs.of("m", 2):
                raise AssertionError("a call began")
            assert caught.value.kind is Kind.UNKNOWN_MODEL
            with runs.of("n", 2):
                assert not runs.over("n")
    assert runs.over("m")
    with runs.of("m", 2):
        assert not runs.over("m")


def test_a_request_of_several_calls() -> None:
    """Makes them all, also those that begin when new requests may not, and counts to its end."""
    runs = Runs()
    with runs.of("m", 1):
        with runs.none_of("m"), runs.of("m", 1):
            assert not runs.over("m")
        assert not runs.over("m")
    assert runs.over("m")
