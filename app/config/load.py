"""Files and environment → Settings, or every problem at once. Only this package reads either."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.config import layers, rules, shown
from app.config.key_entries import KeyEntries
from app.config.layers import Layer
from app.config.problems import ConfigError, Problem
from app.config.schema import ENGINE, ROOT
from app.config.values import Rejected
from app.settings import EngineSettings, LoopSettings, QueueSettings, ServerSettings, Settings

DEFAULTS = Path(__file__).resolve().parents[2] / "etc" / "gateway.yml"
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


def files(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """The files that a configuration is read from, each laid on top of the one before it."""
    named = filter(None, environ.get("LOOP_CONFIG", "").split(":"))
    # The first is not there when only the packages are installed: same values built in.
    return [*([DEFAULTS] if DEFAULTS.is_file() else []), *(Path(n).expanduser() for n in named)]


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings: etc/gateway.yml, the files of LOOP_CONFIG on top, then LOOP_ variables.

    Raises ConfigError with all problems. Reads only; nothing is created or changed.
    """
    layer = Layer()
    for path in files(environ):
        layer.update(layers.read_file(path))
    layer.update(layers.read_environment(environ))
    settings = _Reading(layer, environ).settings()
    problems = layer.problems + rules.check(settings, layer)
    if problems:
        raise ConfigError(problems)
    return settings


class _Reading:
    """One pass over a layer that collects what it refuses in the layer's problems."""

    def __init__(self, layer: Layer, environ: Mapping[str, str]) -> None:
        self._layer = layer
        self._environ = environ

    def settings(self) -> Settings:
        read: dict[str, dict[str, Any]] = {"server": {}, "loop": {}, "loop.queue": {}, "": {}}
        for (*section, key), (value, source) in self._layer.values.items():
            reader = _reader((*section, key))
            found = self._read(reader, value, ".".join((*section, key)), source)
            if found is not None:
                read[".".join(section)][_attribute(key)] = found
        loop = read["loop"]
        if "engines" in loop:
            loop["engines"] = self._engines(loop["engines"])
        keys, file = read[""].get("keys", []), read[""].get("keys_file")
        return Settings(
            server=ServerSettings(**read["server"]),
            loop=LoopSettings(**loop, queue=QueueSettings(**read["loop.queue"])),
            keys=KeyEntries(self._layer, self._read).settings(keys, file),
            keys_file=file,
        )

    def _engines(self, found: list[Any]) -> tuple[EngineSettings, ...]:
        source = self._layer.values[("loop", "engines")][1]
        engines = (self._engine(data, f"loop.engines[{i}]", source) for i, data in enumerate(found))
        return tuple(engine for engine in engines if engine)

    def _engine(self, data: Any, path: str, source: str) -> EngineSettings | None:
        if not isinstance(data, dict):
            self._refuse(source, path, "must be a mapping with url or command, and models", data)
            return None
        folded = layers.fold(ENGINE, data, path, self._layer, source)
        for key in ("url", "models"):
            if key not in folded and not (key == "url" and "command" in folded):
                self._refuse(source, f"{path}.{key}", _MISSING[key])
        if "url" in folded and "command" in folded:
            self._refuse(source, f"{path}.command", _BOTH)
        read = {
            _attribute(key): self._read(ENGINE[key], value, f"{path}.{key}", source)
            for key, value in folded.items()
        }
        given = {key: value for key, value in read.items() if value is not None}
        return EngineSettings(**{"url": "", "models": (), **given})

    def _read(self, reader: Any, value: Any, path: str, source: str) -> Any:
        """The value as read, or None where it is null or refused."""
        try:
            return reader(self._expand(value))
        except Rejected as error:
            self._refuse(source, path, str(error), "null" if value is None else value)
        except RecursionError:
            self._refuse(source, path, "refers to itself", value)
        return None

    def _expand(self, value: Any) -> Any:
        """``value`` with every ${NAME} in its texts replaced; raises Rejected for an unset one."""
        if isinstance(value, str):
            return _VARIABLE.sub(self._variable, value)
        if isinstance(value, list):
            return [self._expand(item) for item in value]
        if isinstance(value, dict):
            return {key: self._expand(item) for key, item in value.items()}
        return value

    def _variable(self, match: re.Match[str]) -> str:
        if match[1] not in self._environ:
            rule = f"names {shown.variable(match[1])} which is not set; set or remove it"
            raise Rejected(rule)
        return self._environ[match[1]]

    def _refuse(self, source: str, path: str, rule: str, value: Any = None) -> None:
        self._layer.problems.append(Problem(source, path, rule, value))


_BOTH = (
    "is given beside url; keep url for an engine that runs by itself, or command for one that the "
    "gateway starts"
)
_MISSING = {
    "url": "is missing: where does the engine listen, such as url: http://127.0.0.1:8080? Or what "
    "starts it, such as command: builtin?",
    "models": "is missing: which models does the engine serve? Such as models: [org/name:tag]",
}


def _reader(path: tuple[str, ...]) -> Any:
    found: Any = ROOT
    for name in path:
        found = found[name]
    return found


def _attribute(key: str) -> str:
    return key.replace("-", "_")
