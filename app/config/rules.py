"""Rules that more than one value takes part in, and which values nothing acts on yet."""

import ipaddress
from dataclasses import fields, is_dataclass
from typing import Any
from urllib.parse import urlsplit

from app.config.layers import KeyPath, Layer
from app.config.problems import Problem
from app.settings import EngineSettings, Settings

_DEFAULT_PORT = {"http": 80, "https": 443}
_INERT = {"server.allowed-hosts", "server.cors-origins"}
_OF_MANAGED = {"stop-timeout", "pinned", "preload"}  # without meaning for an engine that runs


def check(settings: Settings, layer: Layer) -> list[Problem]:
    """The problems of values that are each right on their own."""
    return _exposed(settings, layer) + _twins(settings, layer)


def inert(settings: Settings) -> list[str]:
    """Keys that are set to something other than their default and have no effect.

    ``pinned`` and its like have none for engines that run by themselves.
    """
    changed = _changed(settings, Settings(), "")
    found = {path for path in changed if path in _INERT}
    for engine in settings.loop.engines:
        if not engine.command:
            own = _changed(engine, EngineSettings("", ()), "")
            found |= {f"loop.engines.{key}" for key in own if key in _OF_MANAGED}
    return sorted(found)


def _exposed(settings: Settings, layer: Layer) -> list[Problem]:
    server = settings.server
    if server.allow_anonymous or _loopback(server.address):
        return []
    rule = (
        "is not a loopback address, and without keys whoever reaches it may use the engines; "
        "write 127.0.0.1, or server.allow-anonymous: true to accept that"
    )
    source = _source(layer, ("server", "address"))
    return [Problem(source, "server.address", rule, server.address)]


def _twins(settings: Settings, layer: Layer) -> list[Problem]:
    source, seen, problems = _source(layer, ("loop", "engines")), dict[str, int](), []
    for index, engine in enumerate(settings.loop.engines):
        if not engine.url:  # a problem of its own already
            continue
        first = seen.setdefault(_place(engine), index)
        if first != index:
            rule = f"is the url of loop.engines[{first}] too; put their models into one entry"
            problems.append(Problem(source, f"loop.engines[{index}].url", rule, engine.url))
    return problems


def _place(engine: EngineSettings) -> str:
    """Where an engine listens, the same text for every spelling of one address."""
    parts = urlsplit(engine.url)
    port = parts.port or _DEFAULT_PORT.get(parts.scheme)
    return f"{parts.scheme}://{parts.hostname}:{port}{parts.path}"


def _loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def _source(layer: Layer, path: KeyPath) -> str:
    return layer.values.get(path, (None, "the defaults"))[1]


def _changed(value: Any, default: Any, path: str) -> list[str]:
    """The paths at which two settings of one shape differ; engines are told from their defaults."""
    if isinstance(value, tuple) and value and isinstance(value[0], EngineSettings):
        plain = EngineSettings(url="", models=())
        return [p for engine in value for p in _changed(engine, plain, path)]
    if not is_dataclass(value):
        return [path] if value != default else []
    below = (
        _changed(getattr(value, f.name), getattr(default, f.name), f"{path}.{f.name}")
        for f in fields(value)
    )
    return [p.lstrip(".").replace("_", "-") for paths in below for p in paths]
