"""Which models have calls that run, and which may have none."""

from __future__ import annotations

import pytest

from app.engines.runs import Runs
from app.errors import GatewayError, Kind


def test_calls_are_counted() -> None:
    """Those of each model by themselves, until the last has ended."""
    runs = Runs()
    with runs.of("m"), runs.of("m"), runs.of("n"):
        assert not runs.over("m")
    assert runs.over("m") and runs.over("n")


def test_a_model_that_may_have_none() -> None:
    """Is as unknown to new calls as one that is not there; those that run go on."""
    runs = Runs()
    with runs.of("m"):
        with runs.none_of("m"), runs.none_of("m"):
            assert not runs.over("m")
            with pytest.raises(GatewayError) as caught, runs.of("m"):
                raise AssertionError("a call began")
            assert caught.value.kind is Kind.UNKNOWN_MODEL
            with runs.of("n"):
                assert not runs.over("n")
    assert runs.over("m")
    with runs.of("m"):
        assert not runs.over("m")
