"""What of a new configuration counts while the gateway runs."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from app.config import ConfigError, effective
from app.settings import EngineSettings, LoopSettings, ServerSettings, Settings

RUNNING = Settings()
FIXED = {"address": "::1", "port": 1, "threads": 2, "body_timeout": 3.0, "write_timeout": 4.0,
         "stop_timeout": 5.0, "rate_storage": "redis://x", "log_format": "text",
         "one_cpu": False}
AT_ONCE = {"max_body": 6, "allow_anonymous": True, "allowed_hosts": ("a",),
           "cors_origins": ("http://b",), "ollama_version": "7.8", "allow_remote_media": True}


@pytest.mark.parametrize(("name", "value"), FIXED.items(), ids=FIXED)
def test_what_the_server_is_made_of_stays(name: str, value: object) -> None:
    """Its key is named, and all else counts."""
    server = replace(RUNNING.server, **{name: value})  # type: ignore[arg-type]
    found, later = effective(replace(RUNNING, server=server), RUNNING)
    assert (found, later) == (RUNNING, [f"server.{name.replace('_', '-')}"])


def test_the_registry_stays() -> None:
    """And so does it beside other values that count."""
    loop = LoopSettings(home=Path("/elsewhere"), keep_alive=1.0,
                        engines=(EngineSettings("http://e", ("m",)),))
    found, later = effective(replace(RUNNING, loop=loop), RUNNING)
    assert found.loop == replace(loop, home=RUNNING.loop.home)
    assert later == ["loop.home"]


@pytest.mark.parametrize(("name", "value"), AT_ONCE.items(), ids=AT_ONCE)
def test_what_a_request_meets_counts_at_once(name: str, value: object) -> None:
    """As it is in the new configuration."""
    new = replace(RUNNING, server=replace(RUNNING.server, **{name: value}))  # type: ignore
    assert effective(new, RUNNING) == (new, [])


def test_every_key_of_the_server_is_one_or_the_other() -> None:
    """A new one has to be put into one of these tables."""
    assert {field.name for field in fields(ServerSettings)} == {*FIXED, *AT_ONCE}


def test_an_address_that_stays_is_checked_beside_what_is_new() -> None:
    """It is no reason to let everybody in that a restart would close the door."""
    running = Settings(ServerSettings(address="0.0.0.0", allow_anonymous=True))
    with pytest.raises(ConfigError) as raised:
        effective(Settings(), running)
    [problem] = raised.value.problems
    assert (problem.source, problem.path) == ("the gateway as it runs", "server.address")
