"""A gateway's configuration changes while it runs: by a signal, or by its file alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.fakes.processes import wait_until
from tests.server.gateway_process import GatewayProcess

READ_AGAIN = "the configuration is read again"
REFUSED = "the configuration is refused"


def write(gateway: GatewayProcess, text: str) -> None:
    """Replace the gateway's configuration file at one stroke."""
    new = gateway.directory / "gateway.yml.new"
    new.write_text(text, encoding="utf-8")
    new.replace(config_of(gateway))


def config_of(gateway: GatewayProcess) -> Path:
    """The gateway's configuration file."""
    return gateway.directory / "gateway.yml"


def text_of(gateway: GatewayProcess, section: str = "loop", **changed: Any) -> str:
    """The gateway's configuration with other values of some keys, from now on; None removes one."""
    keys = {key.replace("_", "-"): value for key, value in changed.items()}
    merged = {**gateway.settings.get(section, {}), **keys}
    gateway.settings[section] = {key: each for key, each in merged.items() if each is not None}
    return yaml.safe_dump(gateway.settings, allow_unicode=True)


def outcomes(gateway: GatewayProcess) -> int:
    """How many times it has said what became of a new configuration."""
    return gateway.log().count(READ_AGAIN) + gateway.log().count(REFUSED)


def after(gateway: GatewayProcess, act: Callable[[], object]) -> str:
    """What the gateway wrote from this act on, until it has dealt with a new configuration."""
    before, said = outcomes(gateway), len(gateway.log())
    act()
    wait_until(lambda: outcomes(gateway) > before, "the configuration to be read again")
    return gateway.log()[said:]


def hang_up(gateway: GatewayProcess) -> str:
    """Send SIGHUP to the gateway's master; what it wrote until that was dealt with."""
    return after(gateway, lambda: os.kill(gateway.pid, signal.SIGHUP))


def reload(gateway: GatewayProcess, section: str = "loop", **changed: Any) -> str:
    """Let the gateway run with other values of these keys; what it wrote meanwhile."""
    write(gateway, text_of(gateway, section, **changed))
    said = hang_up(gateway)
    assert READ_AGAIN in said, said
    return said
