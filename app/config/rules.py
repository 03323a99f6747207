"""Rules that more than one value takes part in, and which values nothing acts on yet."""

from importlib.util import find_spec
from urllib.parse import urlsplit

from app.config.layers import KeyPath, Layer
from app.config.problems import Problem
from app.hosts import is_loopback
from app.settings import EngineSettings, Settings

_DEFAULT_PORT = {"http": 80, "https": 443}
_OF_MANAGED = ("pinned", "preload", "stop_timeout")  # without meaning for an engine that runs


def check(settings: Settings, layer: Layer) -> list[Problem]:
    """The problems of values that are each right on their own."""
    return _exposed(settings, layer) + _uncounted(settings, layer) + _twins(settings, layer)


def inert(settings: Settings) -> list[str]:
    """Keys that are set to something other than their default and have no effect.

    ``pinned`` and its like have none for engines that run by themselves.
    """
    plain = EngineSettings("", ())
    engines = [engine for engine in settings.loop.engines if not engine.command]
    return [
        f"loop.engines.{name.replace('_', '-')}" for name in _OF_MANAGED
        if any(getattr(engine, name) != getattr(plain, name) for engine in engines)
    ]


def _exposed(settings: Settings, layer: Layer) -> list[Problem]:
    server = settings.server
    # Keys that are refused are problems of their own, and no reason to do without.
    refused = (p.path.startswith("keys") or p.source == str(settings.keys_file)
               for p in layer.problems)
    if settings.keys or any(refused) or server.allow_anonymous or is_loopback(server.address):
        return []
    rule = (
        "is not a loopback address, and without keys whoever reaches it may use the engines; "
        "write 127.0.0.1, or set keys, or server.allow-anonymous: true to accept that"
    )
    source = _source(layer, ("server", "address"))
    return [Problem(source, "server.address", rule, server.address)]


def _uncounted(settings: Settings, layer: Layer) -> list[Problem]:
    if settings.server.rate_storage.startswith("memory:") or find_spec("redis"):
        return []
    rule = "needs the package redis; install the extra redis, or write memory://"
    return [Problem(_source(layer, ("server", "rate-storage")), "server.rate-storage", rule)]


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


def _source(layer: Layer, path: KeyPath) -> str:
    return layer.values.get(path, (None, "the defaults"))[1]
