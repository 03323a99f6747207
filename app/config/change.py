"""A new configuration beside the one that a gateway runs with: what of it can count at once."""

from dataclasses import replace
from typing import Any, TypeVar

from app.config import rules
from app.config.layers import Layer
from app.config.problems import ConfigError
from app.settings import LoopSettings, ServerSettings, Settings

Section = TypeVar("Section", ServerSettings, LoopSettings)

# What a gateway that runs has already: where it listens, its threads, its registry, what it counts
# with, its time limits of connections, the form of its log, and its master's word on how long an
# end may take.
_FIXED = {
    "server": ("address", "port", "threads", "body-timeout", "write-timeout", "stop-timeout",
               "rate-storage", "log-format", "one-cpu"),
    "loop": ("home",),
}


def effective(new: Settings, running: Settings) -> tuple[Settings, list[str]]:
    """What counts of ``new`` while the gateway runs, and the keys that count after a restart only.

    Raises ConfigError where what is new is no good beside what stays.
    """
    server, later = _kept("server", new.server, running.server)
    loop, others = _kept("loop", new.loop, running.loop)
    found = replace(new, server=server, loop=loop)
    stays = Layer({("server", "address"): (server.address, "the gateway as it runs")})
    problems = rules.check(found, stays)
    if problems:
        raise ConfigError(problems)
    return found, later + others


def _kept(section: str, new: Section, running: Section) -> tuple[Section, list[str]]:
    """``new`` with the fixed values of ``running``, and the keys that these have in ``new``."""
    names = {key: key.replace("-", "_") for key in _FIXED[section]}
    values: dict[str, Any] = {name: getattr(running, name) for name in names.values()}
    later = [f"{section}.{key}" for key, name in names.items()
             if getattr(new, name) != values[name]]
    return replace(new, **values), later
